import { suggestSpelling } from '../argv/spelling.ts'
import { usageError } from '../errors.ts'

interface SettingDefinition {
  about: string
  /**
   * A type of `schemas.ts`, or the allowed values. A `secret` has no flag, and parley prints only its last
   * four characters.
   */
  type: string | readonly string[]
  default?: unknown
  /** The setting's flag, if only some commands have the flag. If omitted, every request command has it. */
  commandFlag?: string
  /**
   * The command of `commandFlag`. Only needed if the same flag has another meaning in another command, like
   * `-m`.
   */
  command?: string
}

export const settingDefinitions = {
  baseUrl: { type: 'address', about: "the gateway's address" },
  accessToken: { type: 'secret', about: "the gateway's bearer token" },
  accessTokenCommand: {
    type: 'text',
    about:
      'a shell command whose first output line is the bearer token; it may take up to --timeout, at most 60 s',
  },
  agentsUrl: { type: 'address', about: "the session service's address" },
  apiKey: { type: 'secret', about: "the session service's key" },
  apiKeyCommand: {
    type: 'text',
    about:
      "a shell command whose first output line is the session service's key; it may take up to --timeout, at most 60 s",
  },
  agentsAuth: {
    type: ['x-api-key', 'bearer'],
    about: 'how the key is sent to the session service: x-api-key or bearer',
    default: 'x-api-key',
  },
  workspaceId: { type: 'headerValue', about: 'a workspace of the session service' },
  family: {
    type: 'word',
    about: "the vendor's name in the gateway's paths and models, as in /alpha_cli/ and alpha-2.5-pro",
    default: 'alpha',
  },
  vendor: {
    type: 'word',
    about: "the vendor's name in the session service's headers, as in vendor-version",
    default: 'vendor',
  },
  agentsVersion: {
    type: 'headerValue',
    about: "the session service's version header",
    default: '2023-06-01',
  },
  betas: {
    type: 'betaList',
    about: "the session service's beta features, separated by commas",
    default: ['managed-agents-2026-04-01'],
  },
  chatModel: { type: 'model', about: 'the model for chat', commandFlag: '-m', command: 'chat' },
  imageModel: { type: 'model', about: 'the model for images', commandFlag: '-m', command: 'image' },
  answerRole: { type: 'text', about: 'the role of answers in a --thread file', default: 'model' },
  stream: {
    type: 'toggle',
    about: 'print the answer as it arrives',
    default: false,
    commandFlag: '--stream',
  },
  streamVia: {
    type: ['query', 'path', 'body'],
    about: 'how a stream is requested: query, path or body',
    default: 'query',
  },
  schemaVia: {
    type: ['prompt', 'native'],
    about: 'how --schema is sent to the model: prompt or native',
    default: 'prompt',
  },
  failOnCut: {
    type: 'toggle',
    about: 'exit with 8 if an answer was cut off or filtered',
    default: false,
    commandFlag: '--fail-on-cut',
  },
  markdown: {
    type: 'toggle',
    about: 'render Markdown on a terminal',
    default: true,
    commandFlag: '--markdown',
  },
  timeout: {
    type: 'seconds',
    about: 'maximum time without data from the service; 0 for no limit',
    default: 600,
  },
  deadline: { type: 'seconds', about: 'maximum time of the run, with retries; 0 for no limit', default: 0 },
  connectTimeout: { type: 'seconds', about: 'maximum time to connect', default: 10 },
  retries: { type: 'count', about: 'maximum number of retries of a request', default: 2 },
  cacert: { type: 'text', about: "a file of CA certificates in PEM, in addition to Node's" },
  allowHttp: {
    type: 'toggle',
    about: 'allow plain http to other machines, where tokens travel unencrypted',
    default: false,
  },
} as const satisfies Record<string, SettingDefinition>

export type SettingName = keyof typeof settingDefinitions

export const settingNames = Object.keys(settingDefinitions) as SettingName[]

export const getSettingDefinition = (name: SettingName): SettingDefinition => settingDefinitions[name]

export const isSecretSetting = (name: SettingName): boolean => settingDefinitions[name].type === 'secret'

/** The secret of each service, and the command that prints the secret. A profile has only one of the two. */
export const secretSettings = {
  gateway: ['accessToken', 'accessTokenCommand'],
  agents: ['apiKey', 'apiKeyCommand'],
} as const

/** Returns the secret and its command, or `undefined` for any other setting. */
export const findSecretPair = (name: SettingName): readonly SettingName[] | undefined =>
  Object.values(secretSettings).find((pair: readonly SettingName[]) => pair.includes(name))

export const hasRequestFlag = (name: SettingName): boolean =>
  !(findSecretPair(name) || getSettingDefinition(name).commandFlag)

export const getSettingFlag = (name: SettingName): string => `--${hyphenated(name)}`

export const getSettingEnvVar = (name: SettingName): string =>
  `PARLEY_${hyphenated(name).replaceAll('-', '_').toUpperCase()}`

const hyphenated = (name: string) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

export function findSettingName(given: string): SettingName {
  const name = settingNames.find((candidate) => candidate === given)
  if (name) return name
  const hint = suggestSpelling(given, settingNames)
  throw usageError(`unknown setting '${given}'${hint}; 'parley help settings' lists them`)
}

export function maskSettingValue(name: SettingName, value: unknown): string {
  const text = formatSettingValue(value)
  if (!isSecretSetting(name)) return text
  return text.length < 8 ? '…' : `…${text.slice(-4)}`
}

/** Returns a text that `config set` and the environment accept. */
export function formatSettingValue(value: unknown): string {
  if (Array.isArray(value)) return value.join(',')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
