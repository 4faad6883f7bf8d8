import { createHash } from 'node:crypto'

const [wanted = 1, of = 1] = (process.env.PROOF_SHARE ?? '').split('/').filter(Boolean).map(Number)

export const notInShare = 'not in this share'

/** Whether a title is in the part that `PROOF_SHARE=2/5` asks for: the second of five. Without it all are. */
export const isInShare = (title: string): boolean =>
  createHash('sha256').update(title).digest().readUInt32BE() % of === wanted - 1
