import { outcomes } from '../errors.ts'
import { hasFlag, type SettingName, settingNames, settingOf, variableOf } from '../settings/table.ts'

type Row = [term: string, about: string]

/** Every setting, in the spelling of the profile file. */
export const settingRows = (): Row[] => settingNames.map((name) => [name, describeSetting(name)])

function describeSetting(name: SettingName): string {
  const { about, default: value, ownFlag } = settingOf(name)
  const defaults = value === undefined ? [] : [`default ${value}`]
  const flags = hasFlag(name) ? [] : [ownFlag === undefined ? 'no flag' : `flag ${ownFlag}`]
  const details = [...defaults, ...flags].join(', ')
  return details === '' ? about : `${about} (${details})`
}

export const variableRows = (): Row[] => [
  ...settingNames.map((name): Row => [variableOf(name), settingOf(name).about]),
  ['PARLEY_PROFILE', 'the current profile'],
  ['PARLEY_SESSION', 'the session of events send, confirm, run, list and follow'],
  ['PARLEY_CONFIG_DIR', 'the folder of the profile file'],
  ['HTTPS_PROXY, HTTP_PROXY', 'a proxy; also ALL_PROXY, and NO_PROXY for hosts that need none'],
  ['NODE_EXTRA_CA_CERTS', "a file of CA certificates, in addition to the system's"],
  ['NODE_DISABLE_COMPILE_CACHE', 'keep no compiled code; it would be in ~/.cache/parley'],
  ['TRACEPARENT, TRACESTATE', 'a trace to go on with (W3C Trace Context): they are sent as headers'],
  ['NO_COLOR, FORCE_COLOR', 'no colour, or always colour; TERM=dumb means no colour'],
]

export const exitRows = (): Row[] => [
  ['0', 'done'],
  ...Object.entries(outcomes).map(
    ([kind, { exit, when, again }]): Row => [
      `${exit}`.padEnd(4) + kind,
      `${when}${again && ` [${again}]`}`.replaceAll('`', ''),
    ],
  ),
]
