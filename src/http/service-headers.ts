import type { Settings } from '../settings/schemas.ts'

/** The headers that the session service wants of every request (session events, 9.2). */
export const agentHeaders = (
  { vendor, agentsVersion, workspaceId }: Settings,
  betas: readonly string[],
): Record<string, string> => ({
  [`${vendor}-version`]: agentsVersion,
  ...(betas.length > 0 ? { [`${vendor}-beta`]: betas.join(',') } : {}),
  ...(workspaceId === undefined ? {} : { [`${vendor}-workspace-id`]: workspaceId }),
})
