import { createHash } from 'node:crypto'

const [wanted = 1, of = 1] = (process.env.PROOF_SHARE ?? '').split('/').filter(Boolean).map(Number)

export const notInShare = 'not in this share'

/**
 * Returns whether a title belongs to the part of the tests that `PROOF_SHARE` names: `2/5` is the second of
 * five parts. Without the variable, every title belongs to it.
 */
export const isInShare = (title: string): boolean =>
  createHash('sha256').update(title).digest().readUInt32BE() % of === wanted - 1
