/** What snappy and lz4 have in common: a match repeats bytes that were written before, possibly its own. */

/** Repeats `length` bytes from `distance` before `position`, which may overlap what is written; the new position. */
export function copyBack(out: Buffer, position: number, distance: number, length: number): number {
  const end = position + length
  if (length > 32) {
    if (distance === 1) {
      out.fill(out[position - 1]!, position, end)
      return end
    }
    // Doubles what can be copied at once: what was written is as good a source as what was there.
    let reach = distance
    while (end - position > reach) {
      out.copyWithin(position, position - reach, position)
      position += reach
      reach *= 2
    }
    out.copyWithin(position, position - reach, end - reach)
    return end
  }
  for (let from = position - distance; position < end; position++, from++) out[position] = out[from]!
  return end
}
