import { chmodSync } from 'node:fs'

// npm packs each file with its mode on the disk, and the umask of git changes the modes of a clone. Fixed
// modes make every package the same.
for (const file of ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json', 'bin/compiled-code.cjs'])
  chmodSync(file, 0o644)
chmodSync('bin/parley.cjs', 0o755)
