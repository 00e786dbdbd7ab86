//! Files with other files behind them: a file on an overlay is in one of its layers, a file on FUSE is provided by its
//! server, and a file in a layer is used through the overlay above it. Device and inode differ from those of the files
//! behind.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::in_use::{mount_tables, unescape};
use super::machine::Machine;
use super::object::Object;

/// File systems that show files of other file systems without a way to find those files. FUSE file systems are
/// recognized by their name.
const OPAQUE: [&str; 5] = ["aufs", "unionfs", "ecryptfs", "shiftfs", "wrapfs"];
/// Type of headstack's own exports, whose contents belong to the process that serves them.
const OWN: &str = "fuse.headstack";

/// A mounted file system, as in a line of proc(5)'s mountinfo.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mounted {
    /// Device number of the file system.
    number: String,
    /// Directory of the file system that is mounted.
    root: String,
    pub at: String,
    pub kind: String,
    pub source: String,
    /// Options of the mount and of the file system.
    pub options: String,
}

impl Mounted {
    /// Parses a line such as `36 35 98:0 /root /at options optional - type source superblock-options`.
    fn parse(line: &str) -> Option<Mounted> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(2);
        let (number, root) = (mount.next()?.to_owned(), unescape(mount.next()?));
        let (at, own) = (unescape(mount.next()?), mount.next()?);
        let mut system = system.split(' ');
        let (kind, source, options) = (system.next()?.to_owned(), unescape(system.next()?), system.next()?);
        Some(Mounted { number, root, at, kind, source, options: format!("{own},{options}") })
    }
}

/// Returns the file system of a path without links: the deepest mount above it, and the latest of those at the same
/// place.
pub(super) fn mount_of(machine: &Machine, path: &Path) -> Option<Mounted> {
    let text = fs::read_to_string(machine.proc.join("self/mountinfo")).ok()?;
    let mounts = text.lines().filter_map(Mounted::parse);
    mounts.filter(|mount| path.starts_with(&mount.at)).max_by_key(|mount| mount.at.len())
}

/// The files behind a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileBacking {
    /// Only the file itself.
    Itself,
    /// Files of layers, any of which may be in use.
    Files(Vec<PathBuf>),
    /// Unknown; contains the kind of file system that the user must allow, and the reason.
    Unknown(String, String),
}

/// Returns the files behind and above the file at `path`, which must not contain links.
pub(super) fn behind(machine: &Machine, path: &Path) -> FileBacking {
    let Some(mount) = mount_of(machine, path) else { return FileBacking::Itself };
    if let Some(at) = overlay_above(machine, path, &mount) {
        let why = format!("it is in a layer of the overlay mounted at {at}, which may use it");
        return FileBacking::Unknown("overlay".to_owned(), why);
    }
    let is_fuse = mount.kind == "fuse" || mount.kind.starts_with("fuse.");
    if mount.kind == OWN {
        FileBacking::Itself
    } else if is_fuse || OPAQUE.contains(&mount.kind.as_str()) {
        let why = format!("it is on {} mounted at {}, whose backing is unknown", mount.kind, mount.at);
        FileBacking::Unknown(mount.kind, why)
    } else if mount.kind == "overlay" {
        in_layers(machine, path, &mount)
    } else {
        FileBacking::Itself
    }
}

/// Returns the files in an overlay's layers that may be behind a file: the file in the upper layer, or else those in
/// all lower layers.
fn in_layers(machine: &Machine, path: &Path, mount: &Mounted) -> FileBacking {
    let process = machine.proc.join("self");
    let unknown = |what: &str| {
        let why = format!("it is on the overlay mounted at {}, {what}", mount.at);
        FileBacking::Unknown("overlay".to_owned(), why)
    };
    let Ok(below) = path.strip_prefix(&mount.at) else { return FileBacking::Itself };
    let inside = Path::new(&mount.root).join(below);
    let inside = inside.strip_prefix("/").unwrap_or(&inside);
    let mut backing_files = Vec::new();
    for (option, folder) in layers(&mount.options) {
        let Some(folder) = path_in_view_of(&process, &folder).filter(|folder| folder.is_dir()) else {
            return unknown("whose layers are in another namespace");
        };
        let file = folder.join(inside);
        // The work directory holds no data of its own.
        if option != Layer::Work && fs::symlink_metadata(&file).is_ok_and(|metadata| metadata.is_file()) {
            backing_files.push(file);
            if option == Layer::Upper {
                break;
            }
        }
    }
    if backing_files.is_empty() {
        unknown("and has another name in its layers")
    } else {
        FileBacking::Files(backing_files)
    }
}

/// Returns the mount point of an overlay that has the file in one of its layers.
fn overlay_above(machine: &Machine, path: &Path, mount: &Mounted) -> Option<String> {
    let tables = mount_tables(machine).ok()?;
    let folders = folders_above(&tables, path, mount);
    for (process, text) in &tables {
        for overlay in text.lines().filter_map(Mounted::parse).filter(|mount| mount.kind == "overlay") {
            for (_, layer) in layers(&overlay.options) {
                let is_above = match path_in_view_of(process, &layer).and_then(|folder| fs::metadata(folder).ok()) {
                    Some(metadata) => folders.iter().any(|(_, is)| *is == Object::of(&metadata)),
                    // The layer's path is relative to an unknown directory, so only its end can be compared.
                    None => !layer.starts_with('/') && folders.iter().any(|(folder, _)| folder.ends_with(&layer)),
                };
                if is_above {
                    return Some(overlay.at);
                }
            }
        }
    }
    None
}

/// Returns the directories above a file on its own file system, including those above a bind mount.
fn folders_above(tables: &[(PathBuf, String)], path: &Path, mount: &Mounted) -> Vec<(PathBuf, Object)> {
    let mut places = vec![(path.to_owned(), PathBuf::from(&mount.at))];
    for other in tables.iter().flat_map(|(_, text)| text.lines()).filter_map(Mounted::parse) {
        let is_whole = other.number == mount.number && other.root.len() < mount.root.len();
        if is_whole && let Ok(rest) = Path::new(&mount.root).strip_prefix(&other.root) {
            let below = path.strip_prefix(&mount.at).unwrap_or(Path::new(""));
            places.push((Path::new(&other.at).join(rest).join(below), PathBuf::from(&other.at)));
        }
    }
    let mut folders = Vec::new();
    for (place, top) in places {
        for folder in place.ancestors().take_while(|folder| folder.starts_with(&top)) {
            if let Ok(metadata) = fs::metadata(folder)
                && metadata.is_dir()
            {
                folders.push((folder.to_owned(), Object::File { device: metadata.dev(), inode: metadata.ino() }));
            }
        }
    }
    folders
}

/// Returns the path of a file as seen by another process; `None` for a path relative to an unknown directory.
fn path_in_view_of(process: &Path, path: &str) -> Option<PathBuf> {
    Some(process.join("root").join(path.strip_prefix('/')?))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    Upper,
    Lower,
    Work,
}

/// Returns the layers in an overlay's options, the upper layer first. Linux 6.5 and later print each layer separately.
fn layers(options: &str) -> Vec<(Layer, String)> {
    let mut backing_files = Vec::new();
    for option in options.split(',') {
        let Some((key, value)) = option.split_once('=') else { continue };
        let value = unescape(value);
        match key {
            "upperdir" => backing_files.push((Layer::Upper, value.replace("\\:", ":"))),
            "workdir" => backing_files.push((Layer::Work, value.replace("\\:", ":"))),
            "lowerdir+" | "datadir+" => backing_files.push((Layer::Lower, value.replace("\\:", ":"))),
            "lowerdir" => backing_files.extend(parted(&value).into_iter().map(|folder| (Layer::Lower, folder))),
            _ => {}
        }
    }
    backing_files.sort_by_key(|(layer, _)| *layer != Layer::Upper);
    backing_files
}

/// Splits text at colons, except at `\:`. Two colons precede layers that only hold data.
fn parted(text: &str) -> Vec<String> {
    let (mut parts, mut part, mut letters) = (Vec::new(), String::new(), text.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => part.extend(letters.next()),
            ':' => parts.push(std::mem::take(&mut part)),
            letter => part.push(letter),
        }
    }
    parts.push(part);
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_read_in_every_form_that_kernels_print() {
        let lower = |path: &str| (Layer::Lower, path.to_owned());
        let of = |options| layers(options);
        assert_eq!(
            of("rw,relatime,lowerdir=/a:/b\\134:c::/data,upperdir=/u\\0401,workdir=/w"),
            [
                (Layer::Upper, "/u 1".to_owned()),
                lower("/a"),
                lower("/b:c"),
                lower("/data"),
                (Layer::Work, "/w".to_owned())
            ]
        );
        assert_eq!(of("ro,lowerdir+=/a,lowerdir+=/b:c,datadir+=/d"), [lower("/a"), lower("/b:c"), lower("/d")]);
        assert_eq!(of("rw,xino=off"), []);
    }

    #[test]
    fn a_line_of_mountinfo_is_read_whole() {
        let mounted = Mounted::parse("36 35 0:42 /sub /a\\040b rw shared:1 - fuse.sshfs host:/x rw,user_id=0").unwrap();
        assert_eq!((mounted.root.as_str(), mounted.at.as_str()), ("/sub", "/a b"));
        assert_eq!((mounted.kind.as_str(), mounted.source.as_str()), ("fuse.sshfs", "host:/x"));
        assert_eq!(Mounted::parse("nonsense"), None);
    }

    #[test]
    fn what_is_behind_fuse_is_not_known_but_of_our_own() {
        let folder = std::env::temp_dir().join(format!("headstack-stacked-{}", std::process::id()));
        fs::create_dir_all(folder.join("proc/self")).unwrap();
        let machine = Machine {
            proc: folder.join("proc"),
            sys: folder.join("sys"),
            dev: folder.join("dev"),
            run: folder.join("run"),
        };
        let write = |kind: &str| {
            let text = format!("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:50 / /srv rw - {kind} x rw\n");
            fs::write(folder.join("proc/self/mountinfo"), text).unwrap();
        };
        for (kind, is_known) in [
            ("fuse", false),
            ("fuse.sshfs", false),
            ("ecryptfs", false),
            ("fuse.headstack", true),
            ("nfs4", true),
            ("xfs", true),
        ] {
            write(kind);
            let backing_files = behind(&machine, Path::new("/srv/file"));
            assert_eq!(backing_files == FileBacking::Itself, is_known, "{kind}: {backing_files:?}");
            assert_eq!(behind(&machine, Path::new("/other")), FileBacking::Itself);
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
