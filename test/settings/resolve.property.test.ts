import fc from 'fast-check'
import { expect, test } from 'vitest'
import { resolveSettings } from '../../src/settings/resolve.ts'
import { scaleRuns } from '../harness/property-runs.ts'

test('parley takes a setting from its flag, the environment, the profile or the default, in this order; --profile puts the profile before the environment', () => {
  const value = fc.option(fc.integer({ min: 1, max: 999 }), { nil: undefined })
  const property = fc.property(value, value, value, fc.boolean(), (flag, profile, env, isNamed) => {
    const { values } = resolveSettings({
      flags: flag === undefined ? {} : { timeout: String(flag) },
      profile: { name: 'p', isNamed, values: profile === undefined ? {} : { timeout: profile } },
      env: { PARLEY_TIMEOUT: env === undefined ? '' : String(env) },
    })
    const [second, third] = isNamed ? [profile, env] : [env, profile]
    expect(values.timeout).toBe(flag ?? second ?? third ?? 600)
  })
  fc.assert(property, scaleRuns(100))
})
