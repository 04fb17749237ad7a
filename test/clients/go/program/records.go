package program

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	fillerStep = 131
	fillerSpan = 4096
)

var (
	filler   []byte
	fillerMu sync.Mutex
)

// fill gives printable bytes from a fixed linear congruential sequence: the same in every family's program.
func fill(length int) []byte {
	fillerMu.Lock()
	defer fillerMu.Unlock()
	if len(filler) < length {
		filler = make([]byte, length)
		x := uint32(1)
		for i := range filler {
			x = x*1664525 + 1013904223
			filler[i] = byte(97 + x>>28)
		}
	}
	return filler
}

// Header is a record header.
type Header struct {
	Name  string
	Value []byte
}

// Record is one record to send.
type Record struct {
	Topic     string
	Sequence  int
	Producer  string
	Key       *string
	Value     []byte
	Headers   []Header
	Partition *int32
	Timestamp time.Time // zero: now
	HasOffset bool      // whether the broker will tell its offset (not with acks=0)
}

// Make makes record i of a produce command.
func (c *Command) Make(i int) Record {
	keys, size := Or(c.Keys, 10), Or(c.Size, 100)
	record := Record{Topic: c.Topic, Sequence: i, Producer: c.ProducerName(), HasOffset: Or(c.Acks, -1) != 0}
	name := ""
	if keys > 0 {
		name = fmt.Sprintf("k%dé", i%keys)
		record.Key = &name
	}
	prefix := []byte(fmt.Sprintf("%s|%s|%d|", record.Producer, name, i))
	at := i * fillerStep % fillerSpan
	record.Value = append(prefix, fill(size + fillerSpan)[at:at+max(0, size-len(prefix))]...)
	for j := range c.Headers {
		value := []byte(fmt.Sprintf("v%d-%d", i, j))
		if j == c.Headers-1 && j > 0 {
			value = []byte{}
		}
		record.Headers = append(record.Headers, Header{fmt.Sprintf("h%d", j), value})
	}
	if c.Partitions != nil {
		partition := int32(i % *c.Partitions)
		record.Partition = &partition
	}
	if c.Timestamp != nil {
		record.Timestamp = time.UnixMilli(*c.Timestamp + int64(i))
	}
	return record
}

// Each calls send for every record of a produce command, paced if it has a rate, until the command is stopped.
func (c *Command) Each(send func(Record)) {
	began := time.Now()
	for i := range Or(c.Count, 1) {
		if c.IsStopped() {
			return
		}
		if c.Rate > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(float64(i) / c.Rate * float64(time.Second)))))
		}
		send(c.Make(c.Start + i))
	}
}

// Origin says which record it is.
func (r Record) Origin() Fields {
	return Fields{"topic": r.Topic, "key": r.Key, "producer": r.Producer, "sequence": r.Sequence}
}

// Placed are the fields of an acknowledged record.
func (r Record) Placed(partition int32, offset int64, timestamp time.Time) Fields {
	fields := r.Origin().With(Fields{
		"valueHash": hash(r.Value), "headersHash": headersHash(r.Headers), "partition": partition,
	})
	if r.HasOffset {
		fields["offset"] = offset
	}
	if !timestamp.IsZero() {
		fields["timestamp"] = timestamp.UnixMilli()
	}
	return fields
}

// Delivered are the fields of a delivered record.
func Delivered(topic string, partition int32, offset int64, key, value []byte, headers []Header, at time.Time) Fields {
	fields := Fields{
		"topic": topic, "partition": partition, "offset": offset, "key": nil, "valueHash": nil,
		"headersHash": headersHash(headers), "timestamp": at.UnixMilli(),
	}
	if key != nil {
		fields["key"] = string(key)
	}
	if value != nil {
		fields["valueHash"] = hash(value)
		if parts := strings.SplitN(string(value[:min(200, len(value))]), "|", 4); len(parts) == 4 {
			fields["producer"] = parts[0]
			fields["sequence"], _ = strconv.Atoi(parts[2])
		}
	}
	return fields
}

func hash(data []byte) string {
	sum := sha1.Sum(data)
	return hex.EncodeToString(sum[:8])
}

func headersHash(headers []Header) string {
	if len(headers) == 0 {
		return ""
	}
	var all []byte
	for _, header := range headers {
		all = append(append(append(append(all, header.Name...), 0), header.Value...), 0)
	}
	return hash(all)
}
