import { createHash } from 'node:crypto'

/** Names a request by what is asked of whom: 32 hexadecimal digits. */
export const hashRequest = ({ model, body }: { model: string; body: Uint8Array }): string =>
  createHash('sha256').update(`${model}\0`).update(body).digest('hex').slice(0, 32)
