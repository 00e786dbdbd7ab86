// bbolt, for the crash tests: `stores run FOLDER SETTINGS TRANSACTIONS` and `stores read FOLDER SETTINGS`.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

type settings struct {
	NoSync         bool `json:"no_sync"`
	NoFreelistSync bool `json:"no_freelist_sync"`
	// A new file for each transaction: what is looked for lies in how one is made.
	NewFiles bool `json:"new_files"`
}

var bucket = []byte("entries")

// value is that of model.py.
func value(transaction, key uint64, length int) []byte {
	state := transaction*1000 + key
	words := make([]byte, 0, length+8)
	for len(words) < length {
		state += 0x9E3779B97F4A7C15
		mixed := (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9
		mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB
		words = binary.LittleEndian.AppendUint64(words, mixed^(mixed>>31))
	}
	return words[:length]
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// file is that of a transaction.
func file(folder string, how settings, number uint64) string {
	if how.NewFiles {
		return filepath.Join(folder, fmt.Sprintf("base-%d.bolt", number))
	}
	return filepath.Join(folder, "base.bolt")
}

func open(file string, how settings) (*bolt.DB, error) {
	return bolt.Open(file, 0o600, &bolt.Options{NoSync: how.NoSync, NoFreelistSync: how.NoFreelistSync})
}

func update(base *bolt.DB, number uint64) error {
	return base.Update(func(transaction *bolt.Tx) error {
		entries, err := transaction.CreateBucketIfNotExists(bucket)
		if err != nil {
			return err
		}
		for row := uint64(0); row < 8; row++ {
			key := (number*7 + row*13) % 60
			length := 900 + int((number*37+row*101)%300)
			if err := entries.Put(fmt.Appendf(nil, "key%02d", key), value(number, key, length)); err != nil {
				return err
			}
		}
		return entries.Put([]byte("count"), fmt.Append(nil, number))
	})
}

func run(folder string, how settings, transactions uint64) {
	var base *bolt.DB
	var err error
	answers := bufio.NewReader(os.Stdin)
	for number := uint64(1); number <= transactions; number++ {
		if base == nil {
			base, err = open(file(folder, how, number), how)
			check(err)
		}
		check(update(base, number))
		if how.NewFiles {
			check(base.Close())
			base = nil
		}
		fmt.Println(number)
		_, err = answers.ReadString('\n')
		check(err)
	}
	if base != nil {
		check(base.Close())
	}
}

// put writes all that a file holds.
func put(out io.Writer, name string, how settings) error {
	base, err := open(name, how)
	if err != nil {
		return err
	}
	return base.View(func(transaction *bolt.Tx) error {
		for err := range transaction.Check() {
			return err
		}
		entries := transaction.Bucket(bucket)
		if entries == nil {
			return nil
		}
		return entries.ForEach(func(key, held []byte) error {
			for _, text := range [][]byte{key, held} {
				if err := binary.Write(out, binary.LittleEndian, uint32(len(text))); err != nil {
					return err
				}
				if _, err := out.Write(text); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func read(folder string, how settings) {
	out := bufio.NewWriter(os.Stdout)
	for number := uint64(1); ; number++ {
		name := file(folder, how, number)
		if _, err := os.Stat(name); os.IsNotExist(err) {
			break
		}
		if err := put(out, name, how); err != nil {
			fmt.Fprintf(os.Stderr, "transaction %d: %v\n", number, err)
			os.Exit(1)
		}
		if !how.NewFiles {
			break
		}
	}
	check(out.Flush())
}

func main() {
	var how settings
	check(json.Unmarshal([]byte(os.Args[3]), &how))
	if os.Args[1] == "read" {
		read(os.Args[2], how)
		return
	}
	var transactions uint64
	_, err := fmt.Sscan(os.Args[4], &transactions)
	check(err)
	run(os.Args[2], how, transactions)
}
