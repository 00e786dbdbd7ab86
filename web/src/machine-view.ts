/** How a part of a system is drawn at a moment: on a canvas, in the colours of the page. */

export interface View {
  /** Default virtual time per second. */
  readonly usual_ns_per_s: number;
  height(width: number): number;
  draw(paint: Paint, width: number, at_ns: number, follow: number | null): void;
  /** The visible state, in words. */
  describe(at_ns: number, follow: number | null): string;
}

const NAMES = ["ground", "raised", "ink", "faint", "rule", "link", "blue", "red", "green", "purple", "yellow", "cyan"] as const;
export type Ink = Record<(typeof NAMES)[number], string>;

export interface Paint {
  canvas: CanvasRenderingContext2D;
  ink: Ink;
}

/** The colours of the page as they are now: by day or by night. */
export function inkOf(element: HTMLElement): Ink {
  const probe = element.appendChild(document.createElement("i"));
  const colour = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const ink = Object.fromEntries(NAMES.map((name) => [name, colour(name)])) as Ink;
  probe.remove();
  return ink;
}

export function dot(canvas: CanvasRenderingContext2D, { x, y }: { x: number; y: number }, radius: number, colour: string): void {
  canvas.fillStyle = colour;
  canvas.beginPath();
  canvas.arc(x, y, radius, 0, 2 * Math.PI);
  canvas.fill();
}

export function bar(canvas: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, colour: string, alpha: number): void {
  const before = canvas.globalAlpha;
  canvas.globalAlpha = before * alpha;
  canvas.fillStyle = colour;
  canvas.fillRect(x, y, width, height);
  canvas.globalAlpha = before;
}

/** Text from its baseline on, cut where there is no room. */
export function text(canvas: CanvasRenderingContext2D, words: string, x: number, y: number, colour: string, most = Infinity): void {
  canvas.fillStyle = colour;
  canvas.font = "12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
  let shown = words;
  while (shown.length > 3 && canvas.measureText(shown).width > most) shown = `${shown.slice(0, -2)}…`;
  canvas.fillText(shown, x, y);
}
