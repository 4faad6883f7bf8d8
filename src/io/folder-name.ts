/** Whether a name says that it is a folder's, by its end. Elsewhere than on Windows a file's name may end in a `\`. */
export const isFolderName = (name: string, platform: NodeJS.Platform): boolean =>
  name.endsWith('/') || (platform === 'win32' && name.endsWith('\\'))
