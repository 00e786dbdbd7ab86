//! [`Servers`]: identical servers with one queue, such as the processors of a controller or host, or a client network.

use crate::Component;

/// Identical servers. Each piece of work goes to the server that is free first.
#[derive(Clone, Debug)]
pub struct Servers {
    free_ns: Vec<u64>,
    busy_ns: u64,
    waited_ns: u64,
}

impl Servers {
    /// Creates `count` idle servers.
    pub fn new(count: u32) -> Self {
        Servers { free_ns: vec![0; count as usize], busy_ns: 0, waited_ns: 0 }
    }

    /// Starts work of `work_ns` as soon as a server is free; returns the time at which it is done, in ns.
    #[inline]
    pub fn work(&mut self, now_ns: u64, work_ns: u64) -> u64 {
        if work_ns == 0 {
            return now_ns;
        }
        let free_ns = self.free_ns.iter_mut().min().expect("there is at least one server");
        let begin_ns = now_ns.max(*free_ns);
        *free_ns = begin_ns + work_ns;
        self.busy_ns += work_ns;
        self.waited_ns += begin_ns - now_ns;
        begin_ns + work_ns
    }

    /// Returns the work so far as a component called `name`.
    pub fn component(&self, name: &str) -> Component {
        Component {
            name: name.to_owned(),
            servers: self.free_ns.len() as u32,
            busy_ns: self.busy_ns,
            waited_ns: self.waited_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_goes_to_the_server_that_is_free_first() {
        let mut servers = Servers::new(2);
        assert_eq!([servers.work(0, 10), servers.work(0, 30), servers.work(5, 10)], [10, 30, 20]);
        assert_eq!(servers.work(15, 0), 15, "no work needs no server");
        let component = servers.component("cpu");
        assert_eq!((component.servers, component.busy_ns, component.waited_ns), (2, 50, 5));
    }
}
