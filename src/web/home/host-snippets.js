/** Snippets with the address of `/connect/mcp`, one for each MCP host. README.md shows the same ones. */

const json = (value) => JSON.stringify(value, null, 2);

/** `where`: the file, menu or shell that the text is for. `text`: of the address. */
export const HOST_SNIPPETS = [
  {
    name: 'Claude Code',
    where: 'In a shell. Then type /mcp in Claude Code to log in.',
    text: (address) => `claude mcp add --transport http gatehouse ${address}`,
  },
  {
    name: 'VS Code',
    where: 'In .vscode/mcp.json of a folder, or with the command “MCP: Open User Configuration”.',
    text: (address) => json({ servers: { gatehouse: { type: 'http', url: address } } }),
  },
  {
    name: 'Cursor',
    where: 'In ~/.cursor/mcp.json.',
    text: (address) => json({ mcpServers: { gatehouse: { url: address } } }),
  },
  {
    name: 'Zed',
    where: 'In the settings file (command “zed: open settings file”).',
    text: (address) => json({ context_servers: { gatehouse: { url: address } } }),
  },
  {
    name: 'Codex',
    where: 'In a shell.',
    text: (address) => `codex mcp add gatehouse --url ${address}\ncodex mcp login gatehouse`,
  },
  {
    name: 'MCP Inspector',
    where: 'In a shell: lists the tools. If no browser opens, visit the address that it prints.',
    text: (address) =>
      `MCP_AUTO_OPEN_ENABLED=true npx -y @modelcontextprotocol/inspector --cli ${address} --transport http --method tools/list`,
  },
];
