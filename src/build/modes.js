import { chmodSync } from 'node:fs'

// npm packs each file with its mode on the disk, and a clone's files have modes by the umask of git.
for (const file of ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json', 'bin/compiled-code.cjs'])
  chmodSync(file, 0o644)
chmodSync('bin/parley.cjs', 0o755)
