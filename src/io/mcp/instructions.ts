/** The text for models that `initialize` and `server/discover` return, at most 600 characters. */

export const INSTRUCTIONS =
  'Tools of this account, in groups by the beginning of their names: wallet_ (balance, transfers), market_ (rates, trades), payment_ and payorder_, chat_ and room_ (messages), and the account itself (sessions, keys, applications). Without a login all tools are listed and none can be called: log in with POST /auth/v1/mcp_login and send Authorization: Bearer <sessionId>; -32001 means to log in again. Addresses below /connect use OAuth. Amounts and ids are decimal strings; keep all their digits. Ask before a tool that moves money or ends access. ?tools=wallet,market_* shortens the list.';
