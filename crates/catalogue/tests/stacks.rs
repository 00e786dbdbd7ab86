//! Stacks of the catalogue, and files of one's own.

use std::fs;

use headstack_catalogue::stack::instances::Instance;
use headstack_catalogue::{Blueprint, Changes, Described, Drafter, ResolvedSystem, load_system, stacks};
use headstack_sim::StackDescription;
use headstack_sim::SystemDescription;
use headstack_sim::stack::description::{
    CacheMode, CacheSoftware, ErasureAccess, HostCacheMode, LayerDescription, MdJournalMode, Redundancy,
};

fn load(name: &str) -> StackDescription {
    match load_system(name, &Changes::default()).unwrap_or_else(|error| panic!("{error}")).description() {
        SystemDescription::Stack(stack) => *stack,
        SystemDescription::Drive(_) | SystemDescription::Array(_) => panic!("{name} is not a stack"),
    }
}

/// Returns the error of a stack file with this text.
fn error_of(text: &str) -> String {
    let folder = std::env::temp_dir().join(format!("headstack-stacks-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("stack.toml");
    fs::write(&path, text).unwrap();
    let error = load_system(path.to_str().unwrap(), &Changes::default()).unwrap_err().to_string();
    fs::remove_dir_all(&folder).unwrap();
    error.replace(&format!("{}/", folder.display()), "")
}

#[test]
fn every_stack_is_complete_and_its_blueprint_gives_the_same() {
    assert!(stacks().len() >= 24);
    for entry in stacks() {
        let ResolvedSystem::Stack(stack) = load_system(entry.id, &Changes::default()).unwrap() else {
            panic!("{} is not a stack", entry.id)
        };
        assert!(stack.file.notes.is_some(), "{} has no notes", entry.id);
        assert!(stack.source("stack.over").is_some(), "{} has no source", entry.id);
        let drafter = Drafter::new(Blueprint::for_system(entry.id, &[]).unwrap()).unwrap();
        assert_eq!(drafter.with(&[]).unwrap(), Described::System(stack.description));
    }
}

#[test]
fn layers_are_in_the_order_of_the_file() {
    let stack = load("postgresql-ext4-gp3");
    let LayerDescription::PageCache(cache) = &stack.layer else { panic!("{:?}", stack.layer) };
    assert_eq!((cache.memory_bytes, cache.background_percent, cache.read_ahead_bytes), (4 << 30, 10, 128 << 10));
    let SystemDescription::Stack(journal) = &stack.below[0] else { panic!() };
    let LayerDescription::Journal(ext4) = &journal.layer else { panic!("{:?}", journal.layer) };
    assert_eq!((ext4.journal_bytes, ext4.interval_ns, ext4.forced_writes), (1 << 30, 5_000_000_000, true));
    let SystemDescription::Stack(instance) = &journal.below[0] else { panic!() };
    let LayerDescription::InstanceLimit(limit) = &instance.layer else { panic!("{:?}", instance.layer) };
    assert_eq!(*limit, Instance::named("m6i.large").unwrap().limits());
}

#[test]
fn a_stack_over_a_stack_has_the_layers_of_both() {
    let server = load("file-server-xfs-raid6");
    assert!(matches!(server.layer, LayerDescription::Network(_)));
    let SystemDescription::Stack(cache) = &server.below[0] else { panic!() };
    assert!(matches!(cache.layer, LayerDescription::PageCache(_)));
}

/// The drive of an OSD and its DB device determine what a cluster does not state.
#[test]
fn defaults_of_a_cluster_follow_from_its_drives_and_version() {
    let cluster = |name: &str| {
        let stack = load(name);
        let LayerDescription::Ceph(ceph) = stack.layer else { panic!("{name} has no cluster") };
        (ceph, stack.below)
    };
    let (disks, below) = cluster("rbd-3-copies-disks-nvme-db");
    assert_eq!((disks.osds_per_db, below.len()), (Some(6), 2));
    assert_eq!((disks.prefer_deferred_bytes, disks.deferred_max, disks.cpu.threads), (64 << 10, 199, 2));
    let (nvme, below) = cluster("rbd-3-copies-nvme");
    assert_eq!((nvme.prefer_deferred_bytes, nvme.cpu.threads, nvme.write_delay_ns), (0, 10, 74_000));
    let usable = 60 * below[0].capacity_bytes() / 3;
    assert!((usable * 90 / 100..usable * 95 / 100).contains(&nvme.capacity_bytes), "{}", nvme.capacity_bytes);
    assert_eq!(SystemDescription::Stack(Box::new(load("rbd-3-copies-nvme"))).drives(), 60);
    let (coded, _) = cluster("rbd-ec-4-2-nvme");
    let Redundancy::Erasure(code) = coded.redundancy else { panic!("{:?}", coded.redundancy) };
    assert_eq!((code.data, code.parity, code.stripe_unit_bytes), (4, 2, 16 << 10));
    assert_eq!(code.access, ErasureAccess::ChangedShards);
}

#[test]
fn impossible_clusters_are_refused_in_one_line() {
    let file = |rest: &str| {
        format!(
            "name = \"x\"\n[stack]\nlayers = [\"ceph\"]\nover = \"pm9a3-1920gb\"\n[ceph]\nosds = 12\nspeed = \"25Gb/s\"\n{rest}"
        )
    };
    for (rest, expected) in [
        ("copies = 3\nerasure = \"4+2\"\n", "ceph.copies: with ceph.erasure"),
        (
            "erasure = \"4-2\"\nhosts = 6\n",
            "ceph.erasure: \"4-2\" is not data and parity shards; write for example \"4+2\"",
        ),
        ("stripe_unit = \"4KiB\"\n", "ceph.stripe_unit: only with ceph.erasure"),
        ("hosts = 5\n", "ceph.hosts: 5 hosts for 12 OSDs"),
        ("hosts = 2\n", "ceph.hosts: 2 hosts for 3 copies or shards; must be 3 or more"),
        ("hosts = 4\nsize = \"1PB\"\n", "ceph.size"),
        ("hosts = 4\nosds_per_db = 3\n", "ceph.db: this key is missing"),
        ("hosts = 4\nversion = \"rees\"\n", "reef"),
        ("hosts = 4\nrecovery_active = 3\n", "ceph.recovery_active: only with ceph.recovery = true"),
    ] {
        let error = error_of(&file(rest));
        assert!(error.contains(expected), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let below = "name = \"x\"\n[stack]\nlayers = [\"ceph\", \"ext4\"]\nover = \"pm9a3-1920gb\"\n";
    assert!(error_of(below).contains("a layer below `ceph`"), "{}", error_of(below));
}

/// Disks behind libata get no forced writes.
#[test]
fn forced_writes_follow_from_the_devices() {
    let takes = |name: &str| {
        let mut system = SystemDescription::Stack(Box::new(load(name)));
        while let SystemDescription::Stack(stack) = system {
            if let LayerDescription::Journal(journal) = &stack.layer {
                return journal.forced_writes;
            }
            system = stack.below[0].clone();
        }
        panic!("{name} has no file system")
    };
    assert!(takes("ext4-nvme"));
    assert!(!takes("xfs-md-raid6-12x16tb"));
}

#[test]
fn impossible_files_are_refused_in_one_line() {
    let file = |layers: &str, rest: &str| {
        format!("name = \"x\"\n[stack]\nlayers = [{layers}]\nover = \"pm9a3-1920gb\"\n{rest}")
    };
    for (layers, rest, expected) in [
        ("", "", "stack.toml:3: stack.layers: no layer; at least one is needed"),
        ("\"ext4\", \"ext4\"", "", "stack.layers: `ext4` twice"),
        ("\"ext4\", \"xfs\"", "", "one file system is allowed"),
        ("\"ext4\", \"page_cache\"", "[page_cache]\nmemory = \"1GiB\"\n", "it must be above"),
        ("\"ext4\"", "[xfs]\nsize = \"64MiB\"\n", "xfs: `xfs` is not among stack.layers"),
        ("\"page_cache\"", "", "page_cache.memory: this key is missing"),
        ("\"network\"", "[network]\nprotocol = \"nvme-tcp\"\n", "network.speed: this key is missing"),
        ("\"instance\"", "[instance]\ntype = \"m6i.larg\"\n", "no instance type \"m6i.larg\"; closest: m6i.large"),
        ("\"ext4\"", "[ext4]\nsize = \"2TB\"\n", "journal.size"),
        ("\"ext4\"", "[ext4]\ninterval = \"-1s\"\n", "a negative time is not allowed"),
        ("\"zfs2\"", "", "zfs2"),
    ] {
        let error = error_of(&file(layers, rest));
        assert!(error.contains(expected), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let missing = error_of("name = \"x\"\n[stack]\nlayers = [\"ext4\"]\nover = \"pm9a3-1920g\"\n");
    assert!(missing.contains("closest: pm9a3-1920gb"), "{missing}");
}

/// The host cache is a layer above the uncached limits, with what Azure states of the instance.
#[test]
fn a_host_cache_is_above_the_limits_of_the_instance() {
    let stack = load("azure-d8s-v3-host-cache");
    let LayerDescription::HostCache(cache) = &stack.layer else { panic!("{:?}", stack.layer) };
    assert_eq!((cache.mode, cache.capacity_bytes, cache.hit_ns), (HostCacheMode::ReadOnly, 200 << 30, 150_000));
    assert_eq!(cache.cached.limits[0].per_s, 16_000);
    let SystemDescription::Stack(instance) = &stack.below[0] else { panic!() };
    let LayerDescription::InstanceLimit(limit) = &instance.layer else { panic!("{:?}", instance.layer) };
    assert_eq!(limit.limits[0].per_s, 12_800);
    let drafter = Drafter::new(Blueprint::for_system("azure-d8s-v3-host-cache", &[]).unwrap()).unwrap();
    let none = [("instance.host_cache".to_owned(), "none".to_owned())];
    let Described::System(SystemDescription::Stack(none)) = drafter.with(&none).unwrap() else { panic!() };
    assert_eq!(*none, **instance, "without caching, only the uncached limits remain");
}

#[test]
fn impossible_host_caches_are_refused_in_one_line() {
    let file = |over: &str, kind: &str, rest: &str| {
        format!(
            "name = \"x\"\n[stack]\nlayers = [\"instance\"]\nover = \"{over}\"\n[instance]\ntype = \"{kind}\"\n{rest}\n"
        )
    };
    let cached = "host_cache = \"read-only\"";
    for (over, kind, rest, expected) in [
        (
            "azure-ultra-512-50k",
            "D8s_v3",
            cached,
            "stack.toml:7: instance.host_cache: Azure Ultra Disk has no host cache; use none",
        ),
        ("azure-premium-v2-500", "D8s_v3", cached, "Azure Premium SSD v2 has no host cache; use none"),
        ("aws-gp3-500", "D8s_v3", cached, "only Azure has host caching; use none"),
        ("990-pro-2tb", "D8s_v3", cached, "needs an Azure volume"),
        ("azure-p30", "D8s_v5", cached, "no source states cached limits of D8s_v5, only of D2s_v3"),
        ("azure-p30", "D8s_v3", "host_cache = \"write-only\"", "read-write"),
        ("azure-p30", "D8s_v3", "host_cache_size = \"1GiB\"", "instance.host_cache_size: no host cache"),
    ] {
        let error = error_of(&file(over, kind, rest));
        assert!(error.contains(expected), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let ext4 = file("azure-p30", "D8s_v3", cached).replace("[\"instance\"]", "[\"instance\", \"network\"]");
    let error = error_of(&format!("{ext4}[network]\nprotocol = \"iscsi\"\nspeed = \"10Gb/s\"\n"));
    assert!(error.contains("a layer between the instance and the volume"), "{error}");
}

/// Azure: disks of 4 TiB and more (P50) have no host cache.
#[test]
fn large_disks_have_no_host_cache() {
    let folder = std::env::temp_dir().join(format!("headstack-large-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let text = stacks().iter().find(|entry| entry.id == "azure-d8s-v3-host-cache").unwrap().text;
    let path = folder.join("stack.toml");
    fs::write(&path, text.replace("\"azure-p30\"", "\"disk.toml\"")).unwrap();
    let loaded = |gib: u64| {
        let disk = format!("name = \"d\"\n[capacity]\nsize = \"{gib}GiB\"\n[volume]\ntype = \"premium-ssd\"\n");
        fs::write(folder.join("disk.toml"), disk).unwrap();
        load_system(path.to_str().unwrap(), &Changes::default()).map_err(|error| error.to_string())
    };
    assert!(loaded(4095).is_ok());
    let error = loaded(4096).unwrap_err();
    assert!(error.contains("disks of 4096 GiB and more have no host cache; this one has 4096 GiB"), "{error}");
    fs::remove_dir_all(&folder).unwrap();
}

/// Block caches have the defaults of their products, which follow from the size of the cache device.
#[test]
fn block_caches_have_the_defaults_of_their_products() {
    let cache = |name: &str| match load(name).layer {
        LayerDescription::BlockCache(cache) => *cache,
        other => panic!("{other:?}"),
    };
    let lvmcache = cache("lvmcache-md-raid6-12");
    // 1.92 TB in at most a million chunks.
    assert_eq!((lvmcache.mode, lvmcache.bucket_bytes), (CacheMode::Writethrough, 30 << 16));
    let CacheSoftware::DmCache(rules) = lvmcache.software else { panic!("{lvmcache:?}") };
    assert_eq!((rules.migration_bytes, rules.promote_after), (8 * (30 << 16), 2));
    let bcache = cache("bcache-nearline-nvme");
    assert_eq!((bcache.mode, bcache.bucket_bytes, bcache.metadata_bytes), (CacheMode::Writeback, 512 << 10, 128 << 20));
    let CacheSoftware::Bcache(rules) = bcache.software else { panic!("{bcache:?}") };
    assert_eq!((rules.sequential_bytes, rules.writeback_percent, rules.synchronous_writes), (4 << 20, 10, true));
    let writecache = cache("dm-writecache-md-raid6-12");
    assert_eq!((writecache.mode, writecache.bucket_bytes), (CacheMode::Writeback, 4096));
    assert!(writecache.metadata_bytes * 256 >= 1_920_000_000_000 - writecache.metadata_bytes);
    let LayerDescription::PageCache(_) = &load("ext4-bcache-nearline-nvme").layer else { panic!() };
}

#[test]
fn impossible_block_caches_are_refused_in_one_line() {
    let file = |layers: &str, rest: &str| {
        format!("name = \"x\"\n[stack]\nlayers = [{layers}]\nover = \"exos-x16-16tb\"\n{rest}")
    };
    let device = "device = \"pm9a3-1920gb\"";
    for (layers, rest, expected) in [
        ("\"bcache\"", String::new(), "bcache.device: this key is missing"),
        ("\"bcache\", \"ext4\"", format!("[bcache]\n{device}\n"), "it must be below"),
        ("\"bcache\"", format!("[bcache]\n{device}\npolicy = \"arc\"\n"), "bcache.policy: Arc is not allowed"),
        ("\"bcache\"", format!("[bcache]\n{device}\nbucket = \"5KB\"\n"), "bcache.bucket: 5000 bytes are not allowed"),
        (
            "\"dm_cache\"",
            format!("[dm_cache]\n{device}\nblock = \"1GiB\"\nmigration_threshold = \"1MiB\"\n"),
            "no block",
        ),
        ("\"dm_cache\"", format!("[dm_cache]\n{device}\nmode = \"writearound\"\n"), "not a mode of dm-cache"),
        ("\"dm_writecache\"", format!("[dm_writecache]\n{device}\nlow_watermark = 60\n"), "60 and 50 %"),
    ] {
        let error = error_of(&file(layers, &rest));
        assert!(error.contains(expected), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// The journal of md has its defaults: write-through, 256 stripes, 10 GiB of the log; no flush of a protected device.
/// ext4 above it sends forced writes, which md takes also over SATA disks.
#[test]
fn a_journal_of_md_has_its_defaults() {
    let journal = |stack: &StackDescription| match &stack.below[0] {
        SystemDescription::Stack(below) => match &below.layer {
            LayerDescription::MdJournal(journal) => journal.clone(),
            other => panic!("{other:?}"),
        },
        SystemDescription::Drive(_) | SystemDescription::Array(_) => panic!("a journal is a layer"),
    };
    let stack = load("ext4-md-raid6-12-journal");
    let through = journal(&stack);
    assert_eq!((through.mode, through.stripe_cache), (MdJournalMode::WriteThrough, 256));
    assert_eq!((through.reclaim_bytes, through.flushes), (10 << 30, false));
    let LayerDescription::Journal(ext4) = &stack.layer else { panic!("{:?}", stack.layer) };
    assert!(ext4.forced_writes);
    let back = journal(&load("ext4-md-raid6-12-write-back"));
    assert_eq!((back.mode, back.stripe_cache), (MdJournalMode::WriteBack, 8192));
}

#[test]
fn impossible_journals_of_md_are_refused_in_one_line() {
    let device = "device = \"pm9a3-1920gb\"";
    for (layers, over, rest, expected) in [
        ("\"md_journal\"", "md-raid6-12x16tb", String::new(), "md_journal.device: this key is missing"),
        ("\"md_journal\"", "md-raid10-8-nvme", format!("{device}\n"), "over raid10; must be raid5 or raid6"),
        ("\"md_journal\"", "exos-x16-16tb", format!("{device}\n"), "over a drive; it must be the last layer"),
        ("\"md_journal\"", "md-raid5-6-nvme-ppl", format!("{device}\n"), "with a partial parity log"),
        ("\"md_journal\", \"ext4\"", "md-raid6-12x16tb", format!("{device}\n"), "a layer below `md_journal`"),
        (
            "\"md_journal\"",
            "md-raid6-12x16tb",
            format!("{device}\nstripe_cache = 4\n"),
            "4 is out of range; must be 17",
        ),
        ("\"md_journal\"", "md-raid6-12x16tb", format!("{device}\nmode = \"back\"\n"), "write-through"),
    ] {
        let error =
            error_of(&format!("name = \"x\"\n[stack]\nlayers = [{layers}]\nover = \"{over}\"\n[md_journal]\n{rest}"));
        assert!(error.contains(expected), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// Values of a stack file can be varied, as in a sweep.
#[test]
fn keys_of_a_stack_can_be_varied() {
    let drafter = Drafter::new(Blueprint::for_system("postgresql-ext4-gp3", &[]).unwrap()).unwrap();
    let varied = drafter.with(&[("page_cache.memory".to_owned(), "1GiB".to_owned())]).unwrap();
    let Described::System(SystemDescription::Stack(stack)) = varied else { panic!() };
    let LayerDescription::PageCache(cache) = &stack.layer else { panic!() };
    assert_eq!(cache.memory_bytes, 1 << 30);
}
