import { CliError } from '../errors.ts'
import type { Caller } from './caller.ts'

/**
 * Makes what has a call made once more where its secret has expired: after a 401, the command that gave the secret is
 * run again, once for all calls that were begun with it. A new secret that never worked is not replaced.
 */
export function createSecretRenewal({
  forgetSecrets,
}: Pick<Caller, 'forgetSecrets'>): <T>(call: () => Promise<T>) => Promise<T> {
  let version = 0
  let hasWorked = true

  /** Whether there may be another secret than the one of this version. */
  function renew(used: number): boolean {
    if (used < version) return true
    if (!hasWorked || !forgetSecrets()) return false
    version++
    hasWorked = false
    return true
  }

  return async (call) => {
    const used = version
    try {
      const value = await call()
      if (used === version) hasWorked = true
      return value
    } catch (error) {
      if (!(error instanceof CliError) || error.details.status !== 401 || !renew(used)) throw error
      const again = version
      const value = await call()
      if (again === version) hasWorked = true
      return value
    }
  }
}
