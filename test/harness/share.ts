import { createHash } from 'node:crypto'

const [wanted = 1, of = 1] = (process.env.PROOF_SHARE ?? '').split('/').filter(Boolean).map(Number)

/** Skip note for tests that run in another shard. The list of skipped tests omits tests with this note. */
export const outsideShareNote = 'not in this share'

/**
 * Returns whether the test with this title belongs to the share in `PROOF_SHARE`: `2/5` is the second of five
 * shares. Returns true if the variable is not set.
 */
export const isInProofShare = (title: string): boolean =>
  createHash('sha256').update(title).digest().readUInt32BE() % of === wanted - 1
