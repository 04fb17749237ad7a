package program

import (
	"sort"
	"sync"
	"time"
)

// Place is a partition.
type Place struct {
	Topic     string
	Partition int32
}

// Member writes the events of one group member and keeps its positions.
type Member struct {
	command   *Command
	mu        sync.Mutex
	positions map[Place]int64
	held      map[Place]bool
	seen      int
	// When the first of the commits failed that have failed since one went well.
	failingSince time.Time
}

// patience is how long commits may fail before a member gives up: longer than a broker needs to come back.
const patience = 60 * time.Second

// NewMember makes the member of a consume command.
func NewMember(c *Command) *Member {
	return &Member{command: c, positions: map[Place]int64{}, held: map[Place]bool{}}
}

func (m *Member) name() Fields { return Fields{"member": m.command.Name(), "group": m.command.Group} }

// Partitions says that partitions came or went (assigned, revoked, lost).
func (m *Member) Partitions(event string, partitions map[string][]int32) {
	pairs := [][2]any{}
	m.mu.Lock()
	for topic, list := range partitions {
		sort.Slice(list, func(a, b int) bool { return list[a] < list[b] })
		for _, partition := range list {
			pairs = append(pairs, [2]any{topic, partition})
			if event == "assigned" {
				m.held[Place{topic, partition}] = true
			} else {
				delete(m.positions, Place{topic, partition})
				delete(m.held, Place{topic, partition})
			}
		}
	}
	m.mu.Unlock()
	m.command.Emit(event, m.name().With(Fields{"partitions": pairs}))
}

// Deliver says that a record was delivered, works on it and says that it is done. False: enough records were seen, or the
// command is to end; the record does not count then.
func (m *Member) Deliver(fields Fields) bool {
	wanted := Or(m.command.Count, 0)
	m.mu.Lock()
	if m.command.IsStopped() || (wanted > 0 && m.seen >= wanted) {
		m.mu.Unlock()
		return false
	}
	m.seen++
	m.mu.Unlock()
	m.command.Emit("delivered", fields.With(m.name()))
	time.Sleep(time.Duration(m.command.WorkMs) * time.Millisecond)
	place := Place{fields["topic"].(string), fields["partition"].(int32)}
	offset := fields["offset"].(int64)
	m.command.Emit("done", m.name().With(Fields{"topic": place.Topic, "partition": place.Partition, "offset": offset}))
	return true
}

// Commitable says that a commit from now on covers this record.
func (m *Member) Commitable(topic string, partition int32, offset int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.positions[Place{topic, partition}] = offset + 1
}

// Full tells whether all wanted records were seen.
func (m *Member) Full() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	wanted := Or(m.command.Count, 0)
	return wanted > 0 && m.seen >= wanted
}

// Position tells what the client itself says about where it stands; -1 where it does not say.
func (m *Member) Position(topic string, partition int32, position, end int64) {
	m.command.Emit("position", m.name().With(Fields{
		"topic": topic, "partition": partition, "position": position, "end": end, "lag": -1,
	}))
}

// Take takes the positions that are to be committed; what was emitted of their records has left by then.
func (m *Member) Take() map[Place]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.positions
	if len(taken) > 0 {
		flush()
	}
	m.positions = map[Place]int64{}
	return taken
}

// HasPositions tells whether there is something to commit.
func (m *Member) HasPositions() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.positions) > 0
}

// NotCommitted says that a commit failed which may go well later: what this member still holds goes out with the next one.
// The error comes back when none has gone well for long.
func (m *Member) NotCommitted(offsets map[Place]int64, err error, fields Fields) error {
	m.command.Emit("error", fields)
	m.mu.Lock()
	defer m.mu.Unlock()
	for place, next := range offsets {
		if _, newer := m.positions[place]; m.held[place] && !newer {
			m.positions[place] = next
		}
	}
	if m.failingSince.IsZero() {
		m.failingSince = time.Now()
	}
	if time.Since(m.failingSince) > patience {
		return err
	}
	return nil
}

// Committed says that offsets were committed.
func (m *Member) Committed(offsets map[Place]int64) {
	m.mu.Lock()
	m.failingSince = time.Time{}
	m.mu.Unlock()
	for place, offset := range offsets {
		m.command.Emit("committed", m.name().With(Fields{"topic": place.Topic, "partition": place.Partition, "offset": offset}))
	}
}
