import type { Context } from '../context.ts'
import type { CliError } from '../errors.ts'
import { toOneLine } from '../io/escape.ts'
import type { Prompter } from '../io/question.ts'
import { createLineWrapper } from '../io/wrapping.ts'
import { readProfileFile, requireProfilePath } from './profile-file.ts'
import {
  addProfileValue,
  changeProfile,
  chooseProfileName,
  findProfileValues,
  type ProfileValues,
  requireChangeableProfile,
} from './profiles.ts'
import { addressSettings } from './resolve.ts'
import { parseSettingInput } from './setting-input.ts'
import {
  getSettingDefinition,
  getSettingEnvVar,
  isSecretSetting,
  maskSettingValue,
  type SettingName,
  secretSettings,
  settingNames,
} from './table.ts'

/**
 * Prompts for each setting. Returns true if the profile then has the address of a service. Throws a usage
 * error if the profile cannot be changed.
 */
export async function setUpProfile(context: Context, prompter: Prompter): Promise<boolean> {
  const { host, flags, messages } = context
  const path = requireProfilePath(host)
  const file = await readProfileFile(host, messages)
  const { name } = chooseProfileName(context, file)
  requireChangeableProfile(name)
  const write = (text: string) => void host.stderr.open().write(`${text}\n`)
  const wrapBelow = await createLineWrapper(host.stderr, margin.length)
  const about = `This sets up the profile '${name}' in ${toOneLine(path)}.`
  write(messages.wrap(`${about} Enter keeps the value in brackets, or skips the question.`))

  const known = findProfileValues(file, name) ?? {}
  const print = (text: string) => write(margin + wrapBelow(toOneLine(text, 2000)))
  const answers: GivenValue[] = []
  const promptFor = async (setting: SettingName) => {
    const values = answers.reduce(withAnswer, known)
    const current = values[setting] ?? getDefault(setting, values)
    const value = await promptForSetting(setting, { current, prompter, print })
    if (value !== undefined) answers.push([setting, value])
    return (value ?? current) !== undefined
  }
  const consequence = 'nothing was changed'
  const hooks = {
    onInterrupt: () => consequence,
    explain: (failure: CliError) => failure.with({ consequence }),
  }
  await context.tracker.during(hooks, async () => {
    for (const { introduction, service, otherSettings } of services) {
      write(`\n${messages.wrap(introduction)}`)
      if (!(await promptFor(addressSettings[service]))) continue
      const [secret, command] = secretSettings[service]
      if (!(await promptFor(secret))) await promptFor(command)
      for (const other of otherSettings) await promptFor(other)
    }
  })
  const values = answers.reduce(withAnswer, known)
  if (answers.length === 0) messages.note('nothing changed')
  else {
    // Another process may have selected another profile meanwhile. The change names the profile, because the
    // secret of the other profile must not be sent to the typed address.
    const named = { ...context, flags: { ...flags, profile: name } }
    await changeProfile(named, (current) => answers.reduce(withAnswer, current))
    const flag = flags.profile ? ` --profile ${name}` : ''
    messages.note(`saved: 'parley config list --effective${flag}' shows the settings`)
  }
  const variables = flags.profile ? [] : settingNames.map(getSettingEnvVar).filter((each) => host.env[each])
  if (variables.length > 0)
    messages.note(
      `the environment overrides the profile: ${variables.join(', ')}; --profile ${name} uses the profile's values`,
    )
  return services.some(({ service }) => values[addressSettings[service]] !== undefined)
}

const margin = '  '

type GivenValue = [name: SettingName, value: unknown]

const withAnswer = (values: ProfileValues, [name, value]: GivenValue) => addProfileValue(values, name, value)

const services = [
  {
    introduction:
      "The model gateway, for chat and image. Its address is the part before /alpha_cli/… in its URLs, such as https://gateway.example. Ask its operator for the address, a token, and the vendor's name in its URLs. Without a gateway, press Enter.",
    service: 'gateway',
    otherSettings: ['family', 'chatModel', 'imageModel'],
  },
  {
    introduction:
      'The session service, for events. Its address is the part before /v1/sessions in its URLs, such as https://agents.example. Ask its operator for the address and a key. Without a session service, press Enter.',
    service: 'agents',
    otherSettings: ['agentsAuth', 'vendor', 'workspaceId'],
  },
] as const

/** The default chat model depends on the family, so the table has no default for it. */
const getDefault = (
  name: SettingName,
  { family = getSettingDefinition('family').default }: ProfileValues,
): unknown => (name === 'chatModel' ? `${family}-2.5-pro` : getSettingDefinition(name).default)

/**
 * Prompts until the answer is valid. Returns `undefined` if the user keeps the current value or skips the
 * question.
 */
async function promptForSetting(
  name: SettingName,
  { current, prompter, print }: { current: unknown; prompter: Prompter; print(line: string): void },
): Promise<unknown> {
  const isHidden = isSecretSetting(name)
  const shown = current === undefined ? '' : ` [${maskSettingValue(name, current)}]`
  // If the profile has no secret and the user presses Enter, the next question asks for a command that prints
  // the secret.
  const enter =
    current === undefined ? 'To name a command that prints it instead, press Enter.' : 'Enter keeps it.'
  const { about } = getSettingDefinition(name)
  print(`${about.charAt(0).toUpperCase()}${about.slice(1)}.${isHidden ? ` ${enter}` : ''}`)
  for (;;) {
    const typed = await prompter.prompt(
      `${margin}${toOneLine(`${name}${isHidden ? ' (not shown)' : ''}${shown}`)}: `,
      { isHidden },
    )
    if (typed === '') return undefined
    const { value, problem, hadQuotes } = parseSettingInput(name, typed)
    if (hadQuotes) print(`The quotes around the value of ${name} were removed.`)
    if (problem === undefined) return value
    print(`${name} ${problem}`)
  }
}
