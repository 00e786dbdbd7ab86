//! Uses of a target that exist before it is to be written.

use super::{DESTROY, OVERWRITE, Way};

/// An ext4 that writes nothing when it is mounted read-only.
const EXT4: &str = "--destroy $NAME --signature ext4";

pub fn ways() -> Vec<Way> {
    vec![
        Way::new(
            "a mounted file system",
            "mkfs.ext4 -q $DISK; mkdir $DIR/m; mount -o ro,noload $DISK $DIR/m",
            EXT4,
            "$NAME is mounted at $DIR/m",
        )
        .undo("umount $DIR/m"),
        Way::new(
            "a file system mounted at a path with a space",
            "mkfs.ext4 -q $DISK; mkdir \"$DIR/a b\"; mount -o ro,noload $DISK \"$DIR/a b\"",
            EXT4,
            "$NAME is mounted at $DIR/a b",
        )
        .undo("umount \"$DIR/a b\""),
        Way::new(
            "a file system mounted twice and unmounted once",
            "mkfs.ext4 -q $DISK; mkdir $DIR/m $DIR/n; mount -o ro,noload $DISK $DIR/m; mount -o ro,noload $DISK $DIR/n; umount $DIR/m",
            EXT4,
            "$NAME is mounted at $DIR/n",
        )
        .undo("umount $DIR/n"),
        Way::new(
            "a bind mount of its folder after it was unmounted",
            "mkfs.ext4 -q $DISK; mkdir $DIR/m $DIR/n; mount -o ro,noload $DISK $DIR/m; mount --bind $DIR/m/lost+found $DIR/n; umount $DIR/m",
            EXT4,
            "$NAME is mounted at $DIR/n",
        )
        .undo("umount $DIR/n"),
        Way::new(
            "a lazily unmounted file system still in use",
            "mkfs.ext4 -q $DISK; mkdir $DIR/m; mount -o ro,noload $DISK $DIR/m; \
             hold sleep 1000 9<$DIR/m/lost+found; umount -l $DIR/m",
            EXT4,
            "holds it exclusively",
        )
        .undo("release"),
        Way::new(
            "a file system mounted in another namespace",
            "mkfs.ext4 -q $DISK; mkdir $DIR/m; \
             hold unshare --mount --propagation private sh -c 'mount -o ro,noload $DISK $DIR/m; >$DIR/ready; exec sleep 1000'; \
             until [ -e $DIR/ready ]; do sleep 0.01; done",
            EXT4,
            "$NAME is mounted at $DIR/m",
        )
        .undo("release"),
        Way::new(
            "a file system in a namespace without processes",
            "mkfs.ext4 -q $DISK; mkdir $DIR/m $DIR/keep; >$DIR/keep/ns; mount --bind --make-private $DIR/keep $DIR/keep; \
             unshare --mount=$DIR/keep/ns --propagation private mount -o ro,noload $DISK $DIR/m",
            EXT4,
            "holds it exclusively",
        )
        .undo("umount $DIR/keep/ns; umount $DIR/keep; sleep 0.1"),
        Way::new(
            "mounted xfs",
            "mkfs.xfs -q -f $DISK; mkdir $DIR/m; mount -o ro,norecovery $DISK $DIR/m",
            "--destroy $NAME --signature xfs",
            "$NAME is mounted at $DIR/m",
        )
        .mib(320)
        .undo("umount $DIR/m"),
        Way::new(
            "mounted btrfs",
            "mkfs.btrfs -q -f $DISK; mkdir $DIR/m; mount -o ro $DISK $DIR/m",
            "--destroy $NAME --signature btrfs",
            "$NAME is mounted at $DIR/m",
        )
        .mib(128)
        .undo("umount $DIR/m"),
        Way::new(
            "the member of a mounted btrfs that the mount table does not list",
            "truncate -s 128M $DIR/one; one=$(losetup --find --show $DIR/one); echo $one >$DIR/loop; \
             mkfs.btrfs -q -f $one $DISK; mkdir $DIR/m; mount -o ro,device=$one,device=$DISK $one $DIR/m",
            "--destroy $NAME --signature btrfs",
            "$NAME is part of a mounted btrfs",
        )
        .mib(128)
        .undo("umount $DIR/m; losetup --detach $(cat $DIR/loop)"),
        Way::new(
            "a disk with a mounted partition",
            "addpart $DISK 1 2048 65536; mkfs.ext4 -q ${DISK}p1; mkdir $DIR/m; mount -o ro,noload ${DISK}p1 $DIR/m",
            EXT4,
            "$NAMEp1 is mounted at $DIR/m",
        )
        .undo("umount $DIR/m; delpart $DISK 1"),
        Way::new(
            "a mounted partition",
            "addpart $DISK 1 2048 65536; mkfs.ext4 -q ${DISK}p1; mkdir $DIR/m; mount -o ro,noload ${DISK}p1 $DIR/m",
            "--destroy $NAMEp1 --signature ext4",
            "$NAMEp1 is mounted at $DIR/m",
        )
        .target("$DISKp1")
        .undo("umount $DIR/m; delpart $DISK 1"),
        Way::new(
            "a partition of a disk mounted as a whole",
            "mkfs.ext4 -q $DISK; addpart $DISK 1 2048 65536; mkdir $DIR/m; mount -o ro,noload $DISK $DIR/m",
            "--destroy $NAMEp1",
            "$NAME is mounted at $DIR/m",
        )
        .target("$DISKp1")
        .undo("umount $DIR/m; delpart $DISK 1"),
        Way::new(
            "a partition of a disk behind a loop device",
            "addpart $DISK 1 2048 65536; losetup --find --show $DISK >$DIR/loop",
            "--destroy $NAMEp1",
            "$NAME is held by loop",
        )
        .target("$DISKp1")
        .undo("losetup --detach $(cat $DIR/loop); delpart $DISK 1"),
        Way::new("active swap", "mkswap $DISK; swapon $DISK", "--destroy $NAME --signature swap", "$NAME is used as swap")
            .undo("swapoff $DISK"),
        Way::new(
            "a partition used as swap, disk named",
            "addpart $DISK 1 2048 65536; mkswap ${DISK}p1; swapon ${DISK}p1",
            "--destroy $NAME --signature swap",
            "$NAMEp1 is used as swap",
        )
        .undo("swapoff ${DISK}p1; delpart $DISK 1"),
        Way::new(
            "a device behind a loop device",
            "losetup --find --show $DISK >$DIR/loop",
            DESTROY,
            "$NAME is held by loop",
        )
        .undo("losetup --detach $(cat $DIR/loop)"),
        Way::new(
            "a device behind two loop devices, mounted",
            "mkfs.ext4 -q $DISK; a=$(losetup --find --show $DISK); b=$(losetup --find --show $a); echo $a $b >$DIR/loop; \
             mkdir $DIR/m; mount -o ro,noload $b $DIR/m",
            EXT4,
            "is mounted at $DIR/m",
        )
        .undo("umount $DIR/m; for d in $(cat $DIR/loop | tr ' ' '\\n' | tac); do losetup --detach $d; done"),
        Way::new(
            "a device that a loop device with an offset overlaps",
            "losetup --find --show --offset 1048576 --sizelimit 1048576 $DISK >$DIR/loop",
            DESTROY,
            "$NAME is held by loop",
        )
        .undo("losetup --detach $(cat $DIR/loop)"),
        Way::new(
            "a loop device whose file backs another one",
            "losetup --find --show $FILE >$DIR/loop",
            DESTROY,
            "$NAME is on a file that also backs loop",
        )
        .undo("losetup --detach $(cat $DIR/loop)"),
        Way::new(
            "a device open for writing in a server",
            "hold sleep 1000 9<>$DISK",
            DESTROY,
            "has it open for writing",
        )
        .undo("release"),
        Way::new(
            "a device open in a server through another node",
            "mknod $DIR/node b 7 ${NAME#loop}; hold sleep 1000 9<>$DIR/node",
            DESTROY,
            "has it open for writing",
        )
        .undo("release"),
        Way::new(
            "a disk with a partition open for writing in a server",
            "addpart $DISK 1 2048 65536; hold sleep 1000 9<>${DISK}p1",
            DESTROY,
            "has it open for writing",
        )
        .undo("release; delpart $DISK 1"),
        Way::new(
            "a partition of a disk open for writing in a server",
            "addpart $DISK 1 2048 65536; hold sleep 1000 9<>$DISK",
            "--destroy $NAMEp1",
            "has it open for writing",
        )
        .target("$DISKp1")
        .undo("release; delpart $DISK 1"),
        Way::new(
            "a loop device with its file open for writing in a server",
            "hold sleep 1000 9<>$FILE",
            DESTROY,
            "has it open for writing",
        )
        .undo("release"),
        Way::new(
            "a device locked by a partitioner",
            "exec 9<$DISK; flock --exclusive 9; hold sleep 1000",
            DESTROY,
            "holds a lock on it",
        )
        .undo("release"),
        Way::new(
            "a disk image exported by a server",
            "truncate -s 1M $DIR/image; nbdkit --unix $DIR/socket --pidfile $DIR/pid file $DIR/image; \
             hold qemu-io -f raw -c 'sleep 20000' \"nbd+unix:///?socket=$DIR/socket\"; cat $DIR/pid >>$DIR/pids; \
             until ls -l /proc/$(cat $DIR/pid)/fd | grep -q image; do sleep 0.01; done",
            OVERWRITE,
            "nbdkit (process",
        )
        .target("$DIR/image")
        .undo("release"),
        Way::new(
            "a disk image open in a virtual machine",
            "truncate -s 1M $DIR/image; hold sleep 1000 9<>$DIR/image",
            OVERWRITE,
            "sleep (process",
        )
        .target("$DIR/image")
        .undo("release"),
        Way::new(
            "a log that a server appends to",
            "echo line >$DIR/log; hold sleep 1000 9>>$DIR/log",
            OVERWRITE,
            "has it open for writing",
        )
        .target("$DIR/log")
        .undo("release"),
        Way::new(
            "an open file, by another hard link",
            "truncate -s 1M $DIR/image; ln $DIR/image $DIR/alias; hold sleep 1000 9<>$DIR/image",
            OVERWRITE,
            "has it open for writing",
        )
        .target("$DIR/alias")
        .undo("release"),
        Way::new(
            "an open file, by a symbolic link",
            "truncate -s 1M $DIR/image; ln -s image $DIR/alias; hold sleep 1000 9<>$DIR/image",
            OVERWRITE,
            "has it open for writing",
        )
        .target("$DIR/alias")
        .undo("release"),
        Way::new(
            "an open file, bind-mounted elsewhere",
            "truncate -s 1M $DIR/image; >$DIR/bound; mount --bind $DIR/image $DIR/bound; hold sleep 1000 9<>$DIR/image",
            OVERWRITE,
            "has it open for writing",
        )
        .target("$DIR/bound")
        .undo("release; umount $DIR/bound"),
        Way::new(
            "a file open in another namespace",
            "truncate -s 1M $DIR/image; hold unshare --mount sleep 1000 9<>$DIR/image",
            OVERWRITE,
            "has it open for writing",
        )
        .target("$DIR/image")
        .undo("release"),
        Way::new(
            "a file mapped for writing after its descriptor was closed",
            "truncate -s 1M $DIR/image; hold python3 -c 'import mmap, os, sys, time; f = os.open(sys.argv[1], os.O_RDWR); m = mmap.mmap(f, 4096); \
             os.closerange(3, 64); open(sys.argv[2], \"w\"); time.sleep(1000)' $DIR/image $DIR/ready; until [ -e $DIR/ready ]; do sleep 0.01; done",
            OVERWRITE,
            "has it in its memory for writing",
        )
        .target("$DIR/image")
        .undo("release"),
        Way::new(
            "a file whose descriptor is in flight between processes",
            "truncate -s 1M $DIR/image; hold python3 -c 'import os, socket, sys, time; a, b = socket.socketpair(); \
             f = os.open(sys.argv[1], os.O_RDWR); socket.send_fds(a, [b\"x\"], [f]); os.close(f); open(sys.argv[2], \"w\"); time.sleep(1000)' \
             $DIR/image $DIR/ready; until [ -e $DIR/ready ]; do sleep 0.01; done",
            OVERWRITE,
            "a process in another namespace has it open for writing",
        )
        .target("$DIR/image")
        .undo("release"),
        Way::new(
            "a file locked by a reader",
            "truncate -s 1M $DIR/image; exec 9<$DIR/image; flock --shared 9; hold sleep 1000",
            OVERWRITE,
            "holds a lock on it",
        )
        .target("$DIR/image")
        .undo("release"),
        Way::new("a file behind a loop device", "true", OVERWRITE, "it is behind $NAME").target("$FILE"),
        Way::new("a file behind a loop device, by another name", "ln $FILE $DIR/alias", OVERWRITE, "it is behind $NAME").target("$DIR/alias"),
        Way::new("a file behind a loop device, by a link", "ln -s $FILE $DIR/alias", OVERWRITE, "it is behind $NAME").target("$DIR/alias"),
        Way::new(
            "a file behind a read-only loop device",
            "truncate -s 1M $DIR/image; losetup --read-only --find --show $DIR/image >$DIR/loop",
            OVERWRITE,
            "it is behind loop",
        )
        .target("$DIR/image")
        .undo("losetup --detach $(cat $DIR/loop)"),
        Way::new(
            "a mounted file",
            "mkfs.ext4 -q $FILE; mkdir $DIR/m; mount -o ro,noload $DISK $DIR/m",
            OVERWRITE,
            "it is behind $NAME; $NAME is mounted at $DIR/m",
        )
        .target("$FILE")
        .undo("umount $DIR/m"),
        Way::new(
            "a mounted file that would be grown",
            "mkfs.ext4 -q $FILE; mkdir $DIR/m; mount -o ro,noload $DISK $DIR/m",
            "--overwrite --create 128MiB",
            "it is behind $NAME",
        )
        .target("$FILE")
        .undo("umount $DIR/m"),
        Way::new(
            "a swap file",
            "head -c 1M /dev/zero >$DIR/swap; chmod 600 $DIR/swap; mkswap $DIR/swap; swapon $DIR/swap",
            OVERWRITE,
            "it is used as swap",
        )
        .target("$DIR/swap")
        .undo("swapoff $DIR/swap"),
        Way::new(
            "a running program",
            "cp $(command -v sleep) $DIR/program; hold $DIR/program 1000",
            OVERWRITE,
            "executes it as a program or library",
        )
        .target("$DIR/program")
        .undo("release"),
        Way::new(
            "a file through an overlay, upper file open in a server",
            "mkdir $DIR/l $DIR/u $DIR/w $DIR/m; truncate -s 1M $DIR/u/image; \
             mount -t overlay -o lowerdir=$DIR/l,upperdir=$DIR/u,workdir=$DIR/w overlay $DIR/m; hold sleep 1000 9<>$DIR/u/image",
            OVERWRITE,
            "has it open for writing (as ",
        )
        .target("$DIR/m/image")
        .undo("release; umount $DIR/m"),
        Way::new(
            "a file through an overlay, upper file behind a loop device",
            "mkdir $DIR/l $DIR/u $DIR/w $DIR/m; truncate -s 1M $DIR/u/image; \
             mount -t overlay -o lowerdir=$DIR/l,upperdir=$DIR/u,workdir=$DIR/w overlay $DIR/m; losetup --find --show $DIR/u/image >$DIR/loop",
            OVERWRITE,
            "it is behind loop",
        )
        .target("$DIR/m/image")
        .undo("losetup --detach $(cat $DIR/loop); umount $DIR/m"),
        Way::new(
            "a file through a bind-mounted overlay, upper file open in a server",
            "mkdir $DIR/l $DIR/u $DIR/w $DIR/m; truncate -s 1M $DIR/u/image; \
             mount -t overlay -o lowerdir=$DIR/l,upperdir=$DIR/u,workdir=$DIR/w overlay $DIR/m; \
             >$DIR/bound; mount --bind $DIR/m/image $DIR/bound; hold sleep 1000 9<>$DIR/u/image",
            OVERWRITE,
            "has it open for writing (as ",
        )
        .target("$DIR/bound")
        .undo("release; umount $DIR/bound; umount $DIR/m"),
        Way::new(
            "a swap file through an overlay",
            "mkdir $DIR/l $DIR/u $DIR/w $DIR/m; head -c 1M /dev/zero >$DIR/u/swap; chmod 600 $DIR/u/swap; mkswap $DIR/u/swap; \
             swapon $DIR/u/swap; mount -t overlay -o lowerdir=$DIR/l,upperdir=$DIR/u,workdir=$DIR/w overlay $DIR/m",
            OVERWRITE,
            "it is used as swap",
        )
        .target("$DIR/m/swap")
        .undo("umount $DIR/m; swapoff $DIR/u/swap"),
        Way::new(
            "the lower file of an overlay, running as a program",
            "mkdir $DIR/l $DIR/u $DIR/w $DIR/m; cp $(command -v sleep) $DIR/l/program; \
             mount -t overlay -o lowerdir=$DIR/l,upperdir=$DIR/u,workdir=$DIR/w overlay $DIR/m; hold $DIR/m/program 1000",
            OVERWRITE,
            "it is in a layer of the overlay mounted at $DIR/m",
        )
        .target("$DIR/l/program")
        .undo("release; umount $DIR/m"),
        Way::new(
            "the lower file of an overlay mounted in another namespace",
            "mkdir $DIR/l $DIR/u $DIR/w $DIR/m; truncate -s 1M $DIR/l/image; \
             hold unshare --mount --propagation private sh -c 'mount -t overlay -o lowerdir=$DIR/l,upperdir=$DIR/u,workdir=$DIR/w \
             overlay $DIR/m; >$DIR/ready; exec sleep 1000'; until [ -e $DIR/ready ]; do sleep 0.01; done",
            OVERWRITE,
            "it is in a layer of the overlay mounted at $DIR/m",
        )
        .target("$DIR/l/image")
        .undo("release"),
        Way::new(
            "the lower file of a bind-mounted overlay",
            "mkdir $DIR/l $DIR/u $DIR/w $DIR/m; truncate -s 1M $DIR/l/image; \
             mount -t overlay -o lowerdir=$DIR/l,upperdir=$DIR/u,workdir=$DIR/w overlay $DIR/m; \
             >$DIR/bound; mount --bind $DIR/l/image $DIR/bound",
            OVERWRITE,
            "it is in a layer of the overlay mounted at $DIR/m",
        )
        .target("$DIR/bound")
        .undo("umount $DIR/bound; umount $DIR/m"),
        Way::new(
            "a file on an overlay with hidden layers",
            "mkdir $DIR/hidden $DIR/m; cd $DIR/hidden; mkdir l u w; truncate -s 1M u/image; cd $DIR; \
             mount -t overlay -o lowerdir=$DIR/hidden/l,upperdir=$DIR/hidden/u,workdir=$DIR/hidden/w overlay $DIR/m; \
             mount -t tmpfs none $DIR/hidden",
            OVERWRITE,
            "whose layers are in another namespace; to write it anyway, add --signature overlay",
        )
        .target("$DIR/m/image")
        .undo("umount $DIR/hidden; umount $DIR/m"),
        Way::new(
            "an image open for reading in a FUSE server",
            "truncate -s 1M $DIR/image; hold sleep 1000 8<>/dev/fuse 9<$DIR/image",
            OVERWRITE,
            "has it open and serves a FUSE file system",
        )
        .target("$DIR/image")
        .undo("release"),
        Way::new(
            "a device open for reading in a FUSE server",
            "hold sleep 1000 8<>/dev/fuse 9<$DISK",
            DESTROY,
            "has it open and serves a FUSE file system",
        )
        .undo("release"),
        Way::new(
            "an image mounted by squashfuse",
            "mkdir $DIR/empty $DIR/m; mksquashfs $DIR/empty $DIR/image -quiet; squashfuse $DIR/image $DIR/m",
            OVERWRITE,
            "has it open and serves a FUSE file system",
        )
        .target("$DIR/image")
        .undo("if command -v squashfuse; then umount $DIR/m; fi"),
        Way::new(
            "an image mounted read-only by fuse2fs",
            "truncate -s 16M $DIR/image; mkfs.ext4 -q $DIR/image; mkdir $DIR/m; fuse2fs -o ro $DIR/image $DIR/m",
            OVERWRITE,
            "has it open",
        )
        .target("$DIR/image")
        .undo("if command -v fuse2fs; then umount $DIR/m; fi"),
        Way::new(
            "a library of a running program",
            "cp $(ldd $(command -v sleep) | grep -o '/[^ ]*libc[^ ]*') $DIR/libc.so.6; \
             hold env LD_LIBRARY_PATH=$DIR sleep 1000",
            OVERWRITE,
            "executes it as a program or library",
        )
        .target("$DIR/libc.so.6")
        .undo("release"),
    ]
}
