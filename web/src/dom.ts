/** Elements made in one line. Text goes in as text: nothing of a report is ever read as HTML. */

type Child = Node | string | null;
type Attributes = Record<string, string | number | boolean | ((event: never) => void)>;

export function html<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return filled(document.createElement(tag), attributes, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Text as paragraphs, with its addresses as links. */
export function paragraphs(text: string): HTMLParagraphElement[] {
  const parts = text.split(/\n\s*\n/).filter((part) => part.trim());
  return parts.map((part) => html("p", {}, ...linked(part)));
}

export function linked(text: string): (Node | string)[] {
  return text.split(/(https?:\/\/[^\s)>\]]*[^\s)>\].,;:])/).map((part, index) =>
    index % 2 ? html("a", { href: part, rel: "noreferrer" }, part) : part,
  );
}

/** A fold whose content is created when it is first opened, or printed. */
export function fold(
  attributes: Attributes,
  summary: Child[],
  content: () => Node[],
): HTMLDetailsElement {
  const details = html("details", attributes, html("summary", {}, ...summary));
  const fill = () => {
    if (details.childElementCount === 1) details.append(...content());
  };
  details.addEventListener("toggle", () => details.open && fill());
  // Immediately, for a caller that cannot wait for the event, such as before printing.
  details.addEventListener("unfold", () => {
    fill();
    details.open = true;
  });
  if (details.open) fill();
  return details;
}
