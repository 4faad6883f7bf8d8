const noFlag = 'secrets have no flag, because other users can see arguments:'
const token = `'parley config set accessToken', or PARLEY_ACCESS_TOKEN`
const key = `'parley config set apiKey', or PARLEY_API_KEY`
const policy = "'parley events run --policy FILE' allows tool uses by rules"

/**
 * Hints for flags of other tools and of earlier versions of parley. The hint for a flag must be true for every
 * command, unless the row names the command.
 */
const hints: readonly (readonly [names: string, text: string])[] = [
  ['login, auth, configure', "'parley config init' asks for addresses and credentials"],
  ['version', "'parley --version' prints the version"],
  [
    'sessions delete, sessions rm, sessions archive, sessions update, sessions rename',
    "'parley api' calls other endpoints, as in: parley api agents /v1/sessions/ID -X DELETE",
  ],
  ['--json, --jq', "--raw prints the service's JSON, in commands that call a service, as in: --raw | jq ."],
  ['-p, --prompt, --message', 'the message is an argument without a flag, as in: parley chat "Say hello"'],
  ['events send -m, events run -m', 'the message is an argument without a flag: parley events send "Hello"'],
  ['--print', 'every command prints its result and ends, so no flag is needed'],
  ['-t, --temp', '--temperature N sets the temperature of an answer, if the model accepts one'],
  ['--format, --output-format', "--raw prints the service's JSON, chat --schema FILE an answer in JSON"],
  ['--since, --tail, --reverse', 'events list --limit N prints the newest N, --order asc the oldest first'],
  ['--wait, --watch', 'events send --follow prints what happens until the session is idle'],
  ['--reason, events confirm -m', 'events confirm --deny --message TEXT gives the reason of a denial'],
  ['--max-time', '--deadline limits the total time, --timeout the time without data from the service'],
  ['events run --ids, events follow --ids', '--errors json lists the waiting tool uses as "pending"'],
  ['events confirm --ids', "it was removed; in a pipe, each line begins with the event's id"],
  ['--retry, --max-retries', '--retries N sets the number of extra attempts'],
  ['--silent', '-q prints only errors and warnings'],
  ['--debug, --log, --log-level', '-v prints the headers of requests and responses, timings and retries'],
  ['--proxy', 'HTTPS_PROXY, HTTP_PROXY and ALL_PROXY name the proxy'],
  ['-k, --insecure, --no-verify-ssl', '--cacert FILE trusts additional CA certificates; the check stays on'],
  ['--json-schema, --response-format', '--schema FILE requires an answer in JSON that matches the schema'],
  ['--parallel, --jobs, --workers', '--concurrency N limits the concurrent requests of a batch'],
  ['--out, --outfile', '-o FILE writes the result of chat, image, api and events run to a file'],
  ['--max-tokens', '--max-output-tokens N limits the length of an answer, in chat and image'],
  ['--schema-retries', "only chat has this flag; repeat 'events run' with a message about the mismatches"],
  ['--fail-on-cut', 'only chat and image have this flag; events run exits with 8 if there is no answer'],
  ['image --stream, image --thread, image --schema', 'only chat has this flag'],
  ['chat --yes, image --yes, api --yes', 'chat, image and api never prompt, so no flag is needed'],
  ['--after', "only 'events run' has this flag, and its resume command contains it"],
  ['events confirm --all', '--pending selects every tool use for which the session waits'],
  ['--yes, --allow, --approve', "'parley events confirm --allow' allows the waiting tool uses"],
  ['--allowed-tools, --disallowed-tools, --permission-mode', policy],
  ['--dangerously-skip-permissions, events run --yes', policy],
  ['--max-turns, --max-budget-usd, --budget', '--deadline, --max-cost and --max-total-tokens limit a run'],
  ['events list -n', '--limit N prints the newest N events'],
  ['events list -f', "'parley events follow' prints events as they happen"],
  ['-n', 'a request has one answer; --batch FILE sends many requests, --limit N limits a list'],
  ['-c, --continue', 'chat --thread FILE continues a conversation; events send or run continues a session'],
  ['--access-token, --token', `${noFlag} ${token}`],
  ['--api-key', `${noFlag} ${key}`],
  ['--key', `${noFlag} for the gateway ${token}; for sessions ${key}`],
  [
    '--ask',
    "it was removed; 'parley config check' tests the profile without a prompt, 'parley chat Hello' with one",
  ],
  ['--unordered', 'it was removed, because a batch always prints each result when it is ready'],
  ['--live, --no-live', 'it was removed, because parley prints each message only when it is complete'],
  ['policy check --policy', 'the policy has no flag, as in: parley policy check FILE'],
  [
    '--policy, --audit',
    "'parley events run' has this flag; without a task, it answers the waiting tool uses",
  ],
  ['--rate', 'it was removed; use serve --fault rate:N, which answers N requests a second'],
  ['--chunk-delay', 'it was removed; use serve --latency MS, which waits before each answer'],
  ['serve --log', 'it was removed, because serve writes its log to stderr; use 2> FILE'],
  ['serve --seed, serve --stream-style', 'it was removed; --answer TEXT sets the answer'],
  ['serve -p', '--port N sets the port'],
  ['--no-color, --no-colour', 'use --color never'],
  ['--url, --endpoint, --endpoint-url', '--base-url names the gateway, --agents-url the session service'],
  ['--system-prompt, --instructions', '--system TEXT instructs the model or the agent'],
  [
    '-s, --session',
    '-s ID names a session, as in: parley events list -s ID; --system TEXT instructs a model',
  ],
  ['sessions create -a', '--agent ID names the agent'],
  ['-a, --attachment, --attach', '-f FILE adds a file to the prompt of chat and image'],
  ['api -f, api -F, api --field', '--set PATH=VALUE sets a field of the JSON body, -i FILE gives the body'],
  ['-d, --data', '-i FILE gives the whole body; --set PATH=VALUE sets a field of it, in chat, image and api'],
  ['--image', "-f FILE adds an image to a request, and 'parley image' creates an image"],
  ['--download', 'it was removed; image prints the link of an image, use curl to download it'],
  ['--seed, --size, --top-p, --aspect-ratio, --effort, --reasoning', '--set PATH=VALUE sets any field'],
]

export const findUnknownNameHint = (name: string) =>
  hints.find(([names]) => `, ${names},`.includes(`, ${name},`))?.[1]

/** Returns true if parley or another tool has this long flag, or a longer flag that begins with its words. */
export const isKnownFlag = (flag: string, longFlags: readonly string[]): boolean =>
  findUnknownNameHint(flag) !== undefined || longFlags.some((long) => `${long}-`.startsWith(`${flag}-`))
