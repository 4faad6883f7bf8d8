import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../harness/run.ts'

interface Certificate {
  key: string
  cert: string
  /** Path of the file that contains `cert`. */
  path: string
}

/**
 * Makes a self-signed certificate for names such as `DNS:localhost`. If `days` is negative, it has expired.
 */
export function makeCertificate(names: string, days = 2): Certificate {
  const folder = temporaryFolder()
  const [key, request, path, extensions] = ['key', 'request', 'cert', 'ext'].map((name) =>
    join(folder, `${name}.pem`),
  ) as [string, string, string, string]
  const openssl = (...argv: string[]) => execFileSync('openssl', argv, { stdio: 'pipe' })
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const subject = `/CN=${names.replaceAll(/[^a-z]/gi, '')}`
  openssl('req', ...curve, '-keyout', key, '-out', request, '-subj', subject)
  writeFileSync(extensions, `subjectAltName=${names}\n`)
  const signed = ['-signkey', key, '-days', String(days), '-extfile', extensions, '-out', path]
  openssl('x509', '-req', '-in', request, ...signed)
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(path, 'utf8'), path }
}
