import { expect, test } from 'vitest'
import { extractDataUris, type FoundImage, ImageFinder } from '../../../src/wire/gateway/found-images.ts'

const find = (...values: unknown[]) => {
  const finder = new ImageFinder()
  for (const value of values) finder.find(value)
  finder.finish()
  const { images, links, texts } = finder
  return { images: [...images.map(shown), ...links.map((link) => `-> ${link}`)], texts }
}

/** Formats an image as `TYPE DATA`. */
const shown = ({ mimeType = '?', base64 }: FoundImage) =>
  `${mimeType} ${Buffer.from(base64).toString('latin1')}`

const png = 'image/png'
/** The shortest base64 data that counts as an image in a text. */
const data = 'A'.repeat(32)
const uri = `data:${png};base64,${data}`

const toNone = (value: unknown): [unknown, string[]] => [value, []]

test.each<[value: unknown, images: string[]]>([
  [{ inlineData: { mimeType: png, data: 'x' } }, [`${png} x`]],
  [{ inline_data: { mime_type: png, data: 'x' } }, [`${png} x`]],
  [{ type: 'image', source: { media_type: png, data: 'x' } }, [`${png} x`]],
  [{ inlineData: { mimeType: 5, data: 'x' } }, ['? x']],
  [{ inlineData: { data: 'data:image/gif;base64,x', mimeType: png } }, ['image/gif x']],
  [{ inlineData: { data: 'data:image/gif,x' } }, ['? data:image/gif,x']],
  [{ inlineData: { data: 'data:image/gif;base64x' } }, ['? data:image/gif;base64x']],
  [{ all: [{ bytesBase64Encoded: 'x', mimeType: png }, { bytesBase64Encoded: 'y' }] }, [`${png} x`, '? y']],
  [{ data: [{ b64_json: 'x' }, { url: 'y' }] }, ['? x', '-> y']],
  [{ image: { imageBytes: 'x' } }, ['? x']],
  [{ fileData: { mimeType: png, fileUri: 'x' } }, ['-> x']],
  [{ file_data: { file_uri: 'x' } }, ['-> x']],
  [{ fileData: { fileUri: uri } }, [`${png} ${data}`]],
  [{ source: { type: 'url', url: 'x' } }, ['-> x']],
  [{ image_url: { url: 'x' } }, ['-> x']],
  [{ image_url: 'x' }, ['-> x']],
  [
    [{ a: { inlineData: { data: '1' } }, b: [{ imageBytes: '2' }] }, { imageBytes: '3' }],
    ['? 1', '? 2', '? 3'],
  ],
  ...[{ inlineData: { data: 5 } }, { other: { data: 'x' } }, { other: { fileUri: 'x' } }, null].map(toNone),
  ...[{ b64_json: 5, imageBytes: null, bytesBase64Encoded: {} }, { link: { url: 'x' } }, 'x'].map(toNone),
  ...[{ image_url: 5 }].map(toNone),
])('the images in the value %j are %j', (value, images) => expect(find(value)).toEqual({ images, texts: [] }))

const part = (text: string, more: object = {}) => ({ parts: [{ text, ...more }] })

test.each<[values: unknown[], texts: string[], images?: string[]]>([
  [[{ parts: [{ text: 'a' }, { text: 'b' }] }], ['a', 'b']],
  [[{ content: [{ text: 'a' }] }, { content: 'b' }, { delta: { text: 'c' } }], ['abc']],
  [[{ content_block: { text: 'd' } }], ['d']],
  [[{ citation: { text: 'a' }, text: 'b' }], []],
  [[{ parts: [{ text: 5, content: {} }] }], []],
  [[part('a'), part('b')], ['ab']],
  [[part('a'), { usage: 1 }, part('b')], ['ab']],
  [[part(' '), part('\n')], []],
  [[part('a'), part('b', { thought: true }), part('c')], 'ac'.split('')],
  [[part('a', { thought: 'yes' })], ['a']],
  [[{ parts: [{ text: 'a' }, { inlineData: { data: 'x' } }, { text: 'b' }] }], ['a', 'b'], ['? x']],
  [[part('a'), { inlineData: { data: 'x' } }, part('b')], ['a', 'b'], ['? x']],
  [[part(`a ${uri.slice(0, 30)}`), part(`${uri.slice(30)} b`)], ['a  b'], [`${png} ${data}`]],
  [[part(uri, { thought: true })], [], [`${png} ${data}`]],
  [[part(uri, { inlineData: { data: 'x' } })], [], [`${png} ${data}`, '? x']],
])('the texts of the image answer %j are found in order', (values, texts, images = []) =>
  expect(find(...values)).toEqual({ images, texts }),
)

test('texts and links of an image answer keep their byte order mark', () => {
  const [images, texts] = [['-> \ufeffé'], ['\ufeffé']]
  expect(find({ content: '\ufeffé', image_url: '\ufeffé' })).toEqual({ images, texts })
})

const long = `${data}+/=_-`
test.each<[text: string, rest: string, images?: string[]]>([
  ...[
    ...['', 'a data:image/png;base64, b', `data:${png};base64,${data.slice(1)}`, `data:${png},${data}`],
    ...[`data:${png};base64;a,${data}`, `data:${png};a b;base64,${data}`, `data:image/;base64,${data}`],
    ...[`data:text/plain;base64,${data}`, `data:image/png;${'a'.repeat(101)};base64,${data}`],
    `${data}data:${png};base64,AAAA`,
  ].map((text): [string, string] => [text, text]),
  [`data:image/png;base64,${uri}`, 'data:image/png;base64,', [`${png} ${data}`]],
  [`a ${uri} b`, 'a  b', [`${png} ${data}`]],
  [`DATA:image/svg+xml;BASE64,${long}`, '', [`image/svg+xml ${long}`]],
  [`data:image/x.y-z;charset=utf-8;a=b;base64,${data}!`, '!', [`image/x.y-z ${data}`]],
  [`${uri}${uri}`, `:image/png;base64,${data}`, [`${png} ${data}data`]],
  [`${uri} ${uri}\n${data}`, ` \n${data}`, [`${png} ${data}`, `${png} ${data}`]],
  [`data:image/png;${'a'.repeat(100)};base64,${data}`, '', [`${png} ${data}`]],
  [`a data:image/png ${uri}`, 'a data:image/png ', [`${png} ${data}`]],
  ...['(', '"', "'", '<'].map((open): [string, string, string[]] => [
    `${open}${uri}\r\n${data}!`,
    `${open}!`,
    [`${png} ${data}\r\n${data}`],
  ]),
  [`(a) ${uri}\n${data}`, `(a) \n${data}`, [`${png} ${data}`]],
  [`![a fox](${uri}) b`, '![a fox]() b', [`${png} ${data}`]],
  [`[fox](${uri} "title")`, '[fox]( "title")', [`${png} ${data}`]],
  [`[b ${uri})`, '[b )', [`${png} ${data}`]],
  [`ab cd ${uri})`, 'ab cd )', [`${png} ${data}`]],
  [`![](${uri}\n)`, '![]()', [`${png} ${data}\n`]],
  [`](${uri})`, ']()', [`${png} ${data}`]],
  [`[a] b](${uri})`, '[a] b]()', [`${png} ${data}`]],
  [`[a]b(${uri})`, '[a]b()', [`${png} ${data}`]],
  [`[a](${uri})[b](${uri})`, '[a]()[b]()', [`${png} ${data}`, `${png} ${data}`]],
])('data URIs are extracted from the text %j', (text, rest, images = []) => {
  const split = extractDataUris(text)
  expect({ text: split.text, images: split.images.map(shown) }).toEqual({ text: rest, images })
})
