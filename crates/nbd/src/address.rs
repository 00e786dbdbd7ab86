//! Addresses of exports: URIs as defined in NetworkBlockDevice/nbd, doc/uri.md.

use std::fmt;
use std::path::PathBuf;

/// Default port of servers (IANA).
pub const PORT: u16 = 10_809;

/// Schemes of the URIs of exports.
const SCHEMES: [&str; 8] = ["nbd", "nbd+unix", "nbd+vsock", "nbd+ssh", "nbds", "nbds+unix", "nbds+vsock", "nbds+ssh"];

/// The place at which a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A host and a port.
    Tcp {
        /// Name or number, without the brackets of IPv6.
        host: String,
        /// Its port.
        port: u16,
    },
    /// A socket of the file system.
    Unix(PathBuf),
}

/// An export of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The place at which its server listens.
    pub place: Place,
    /// Its name, which may be empty.
    pub export: String,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Place::Tcp { host, port } if host.contains(':') => write!(formatter, "[{host}]:{port}"),
            Place::Tcp { host, port } => write!(formatter, "{host}:{port}"),
            Place::Unix(path) => write!(formatter, "{}", path.display()),
        }
    }
}

impl Address {
    /// Whether a text is meant as the address of an export.
    pub fn is_meant(text: &str) -> bool {
        text.split_once("://").is_some_and(|(scheme, _)| SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()))
    }

    /// Parses a URI: `nbd://host:port/export`, `nbd+unix:///export?socket=PATH`.
    ///
    /// # Errors
    /// The error and the allowed forms.
    pub fn parse(text: &str) -> Result<Address, String> {
        let allowed = "nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH";
        let (scheme, rest) = text.split_once("://").ok_or_else(|| format!("is not a URI; {allowed} is allowed"))?;
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let export = decoded(path)?;
        let scheme = scheme.to_ascii_lowercase();
        let place = match scheme.as_str() {
            "nbd" => tcp(authority)?,
            "nbd+unix" if !authority.is_empty() => {
                return Err(format!("a Unix socket has no host, but {authority} is named; nbd+unix:/// is allowed"));
            }
            "nbd+unix" => Place::Unix(socket(query)?.into()),
            "nbds" | "nbds+unix" | "nbds+vsock" | "nbds+ssh" => {
                return Err(format!("{scheme} is NBD over TLS, which is not supported; {allowed} is allowed"));
            }
            _ => return Err(format!("{scheme} is not supported; {allowed} is allowed")),
        };
        Ok(Address { place, export })
    }
}

fn tcp(authority: &str) -> Result<Place, String> {
    // A user name, which NBD does not use without TLS.
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("an IPv6 address ends with ]")?;
            (host, after.strip_prefix(':').unwrap_or(after))
        }
        None => authority.split_once(':').unwrap_or((authority, "")),
    };
    let port = match port {
        "" => PORT,
        text => text.parse().map_err(|_| format!("{text:?} is not a port; 1 to 65535 is allowed"))?,
    };
    let host = if host.is_empty() { "localhost".to_owned() } else { decoded(host)? };
    Ok(Place::Tcp { host, port })
}

fn socket(query: &str) -> Result<String, String> {
    let named = query.split('&').find_map(|pair| pair.strip_prefix("socket="));
    match named {
        Some(path) if !path.is_empty() => decoded(path),
        _ => Err("names no socket; nbd+unix:///EXPORT?socket=PATH is allowed".to_owned()),
    }
}

/// Undoes `%20` and the like.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.filter(|two| !two.starts_with('+')).and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(byte.ok_or_else(|| format!("{text:?}: % must be followed by two hexadecimal digits"))?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| format!("{text:?} is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16, export: &str) -> Result<Address, String> {
        Ok(Address { place: Place::Tcp { host: host.into(), port }, export: export.into() })
    }

    fn unix(path: &str, export: &str) -> Result<Address, String> {
        Ok(Address { place: Place::Unix(path.into()), export: export.into() })
    }

    #[test]
    fn uris_are_read_as_the_protocol_has_them() {
        assert_eq!(Address::parse("nbd://example.com"), tcp("example.com", PORT, ""));
        assert_eq!(Address::parse("nbd://example.com:4444/a%20disk"), tcp("example.com", 4444, "a disk"));
        assert_eq!(Address::parse("NBD://me@[::1]:99/x/y"), tcp("::1", 99, "x/y"));
        assert_eq!(Address::parse("nbd://[fe80::1]//x"), tcp("fe80::1", PORT, "/x"));
        assert_eq!(Address::parse("nbd:///x"), tcp("localhost", PORT, "x"));
        assert_eq!(Address::parse("nbd+unix:///x?socket=/run/a%3fb"), unix("/run/a?b", "x"));
        assert_eq!(Address::parse("nbd+unix://?tls-type=x&socket=s"), unix("s", ""));
    }

    #[test]
    fn what_is_not_reached_is_refused_by_name() {
        for (text, why) in [
            ("nbds://host/x", "nbds is NBD over TLS"),
            ("nbds+unix:///x?socket=s", "nbds+unix is NBD over TLS"),
            ("nbd+vsock://2/x", "nbd+vsock is not supported"),
            ("nbd+unix:///x", "names no socket"),
            ("nbd+unix://host/x?socket=s", "has no host"),
            ("nbd://host:port/x", "\"port\" is not a port"),
            ("nbd://host/%4", "two hexadecimal digits"),
            ("nbd://host/%+4", "two hexadecimal digits"),
            ("nbd://[::1/x", "ends with ]"),
        ] {
            let error = Address::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
            assert!(Address::is_meant(text));
        }
        for other in ["/dev/sda", "nbd", "nbd:x", "http://nbd/"] {
            assert!(!Address::is_meant(other), "{other}");
        }
    }
}
