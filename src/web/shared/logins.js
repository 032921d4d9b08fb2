/** Logins in words. Read by pages and tests. */

/** Words for the login of an agent, by its type. */
export const LOGINS = {
  McpVerified: 'signed by its key',
  McpApp: 'as an application',
  McpBasic: 'by a public key alone',
};
