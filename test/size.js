// Prints the lines and tokens of `src`, without blanks and comments, by folder, and compares them with a commit:
// `npm run size -- COMMIT`, by default origin/main or, if that is the current commit, the last tag.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const root = join(import.meta.dirname, '..')

const piece =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/(?![*/\s])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[dgimsuvy]*(?=[\s.,;)\]]|$)|[\w$#]+|\S/g

// A string is one token. In a template or an expression each word and each sign is one.
const token = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|[\w$#]+|[^\w\s]/g

function measure(text) {
  const lines = new Set()
  let tokens = 0
  let line = 0
  let from = 0
  for (const { 0: found, index } of text.matchAll(piece)) {
    for (let end = text.indexOf('\n', from); end >= 0 && end < index; end = text.indexOf('\n', from)) {
      line++
      from = end + 1
    }
    if (/^\/[/*]/.test(found)) continue
    tokens += found.match(token).length
    for (let below = found.split('\n').length - 1; below >= 0; below--) lines.add(line + below)
  }
  return { lines: lines.size, tokens }
}

/** Returns the sizes of all folders of `src`. `files` are pairs of a path below `src`, and its text. */
function measureFolders(files) {
  const folders = { all: { lines: 0, tokens: 0 } }
  for (const [path, text] of files) {
    const [folder, inner] = path.split('/')
    const name =
      inner === undefined
        ? '.'
        : folder === 'sessions' && !inner.endsWith('.ts')
          ? `${folder}/${inner}`
          : folder
    const { lines, tokens } = measure(text)
    for (const key of ['all', name]) {
      folders[key] ??= { lines: 0, tokens: 0 }
      folders[key].lines += lines
      folders[key].tokens += tokens
    }
  }
  return folders
}

function readFiles() {
  const source = join(root, 'src')
  const entries = readdirSync(source, { recursive: true, withFileTypes: true })
  return entries
    .filter(({ name }) => name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [relative(source, path).replaceAll('\\', '/'), readFileSync(path, 'utf8')])
}

/** Returns the output of git; empty if it fails, because a package or a shallow clone has no history. */
function git(...argv) {
  try {
    const options = { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28, stdio: ['ignore', 'pipe', 'ignore'] }
    return execFileSync('git', argv, options).trim()
  } catch {
    return ''
  }
}

function readFilesOf(commit) {
  const paths = git('ls-tree', '-r', '--name-only', commit, 'src').split('\n')
  return paths
    .filter((path) => path.endsWith('.ts'))
    .map((path) => [path.slice('src/'.length), git('show', `${commit}:${path}`)])
}

function findDefault() {
  const main = git('rev-parse', '--verify', 'origin/main')
  return main === git('rev-parse', 'HEAD') ? git('describe', '--tags', '--abbrev=0') : main
}

const commit = process.argv[2] ?? findDefault()
const folders = measureFolders(readFiles())
const before = commit === '' ? undefined : measureFolders(readFilesOf(commit))
const names = [...new Set([...Object.keys(folders), ...Object.keys(before ?? {})])]
const sizeOf = (all, name) => all?.[name] ?? { lines: 0, tokens: 0 }
const rows = names.sort((one, other) => sizeOf(folders, other).lines - sizeOf(folders, one).lines)
const print = (name, cells) =>
  process.stdout.write(`${name.padEnd(24)}${cells.map((cell) => String(cell).padStart(8)).join('')}\n`)
print('folder', before ? ['lines', 'before', 'tokens', 'before'] : ['lines', 'tokens'])
for (const name of rows) {
  const [now, then] = [sizeOf(folders, name), sizeOf(before, name)]
  print(name, before ? [now.lines, then.lines, now.tokens, then.tokens] : [now.lines, now.tokens])
}
