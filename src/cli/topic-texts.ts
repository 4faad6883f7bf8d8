import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Option } from 'commander'
import { createFlagsThatNeedBatch } from '../batch/flags.ts'
import {
  getSettingDefinition,
  getSettingEnvVar,
  hasRequestFlag,
  type SettingName,
  settingNames,
} from '../settings/table.ts'
import { createGeneralFlags, createRequestFlags } from './flags.ts'
import { formatTwoColumns } from './help-text.ts'
import type { TopicName } from './topics.ts'

type Row = [term: string, about: string]

/** Each list replaces a line of a topic, such as `{settings}`. */
const generatedLists: Record<string, () => Row[]> = {
  settings: () => settingNames.map((name) => [name, describeSetting(name)]),
  'general flags': () => createGeneralFlags().map(toFlagRow),
  'request flags': () => createRequestFlags().map(toFlagRow),
  'batch flags': () => createFlagsThatNeedBatch().map(toFlagRow),
  variables: () => settingNames.map((name) => [getSettingEnvVar(name), getSettingDefinition(name).about]),
}

const toFlagRow = ({ flags, description }: Option): Row => [flags, description]

function describeSetting(name: SettingName): string {
  const { about, default: value, commandFlag } = getSettingDefinition(name)
  const defaults = value === undefined ? [] : [`default ${value}`]
  const flags = hasRequestFlag(name) ? [] : [commandFlag === undefined ? 'no flag' : `flag ${commandFlag}`]
  const details = [...defaults, ...flags].join(', ')
  return details === '' ? about : `${about} (${details})`
}

/** The build copies the topics next to the program. */
const readTopic = (name: TopicName) => readFileSync(join(import.meta.dirname, `topics/${name}.txt`), 'utf8')

/** Returns a map from each kind of failure to the description of its exit code. */
export function readExitCodeDescriptions(): Map<string | undefined, string | undefined> {
  const rows = readTopic('exit-codes').replace(/\n {9,}/g, ' ')
  const found = rows.matchAll(/^ {2}\d+ +(\S+) +(.*?)(?: \[.*\])?$/gm)
  return new Map([...found].map(([, kind, when]) => [kind, when]))
}

export const formatTopic = (name: TopicName, width: number | undefined): string =>
  readTopic(name).replace(/^\{(.*)\}$/gm, (_, list) =>
    formatTwoColumns(generatedLists[list]?.() ?? [], width),
  )
