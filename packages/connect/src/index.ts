/** Public interface of the package for programs: a `fetch` for MCP clients, the login and its signature. */
export { AddressError } from './address.ts';
export { type AgentKey, createKeyPair, enrollmentLink, type KeyPair, keyOf, lettersOf } from './agent-key.ts';
export { gatehouseFetch } from './gatehouse-fetch.ts';
export { defaultKeyFile, KeyFileError, loadKey } from './key-file.ts';
export { type LoginOptions, LoginRefused, login, type McpSession, sign } from './login.ts';
export type { Fetch, SendOptions } from './send.ts';
