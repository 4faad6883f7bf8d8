import type { Context } from '../../context.ts'
import type { Caller } from '../../http/caller.ts'
import type { SessionParts } from '../session.ts'
import type { SessionState } from '../session-state.ts'
import type { Audit } from './audit.ts'

/** A session whose tool uses are answered. */
export interface RunningSession {
  context: Context
  caller: Caller
  parts: SessionParts
  state: SessionState
  audit: Audit
  /** What becomes of the session when the run is interrupted. */
  fate: string
  /** With `--raw` receipts are printed as they are. */
  isPrinted?: boolean
}
