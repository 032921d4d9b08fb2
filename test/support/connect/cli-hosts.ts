/**
 * MCP hosts with a command line, in test/e2e/peers/cli: how each is given a server, logs in, lists and calls. All run in a
 * network namespace with loopback alone, so none reaches its own service.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { lacking } from '../programs/tools.ts';
import { PEERS, type Peer, startProgram, unavailable } from './peers.ts';

/** The server's name in every host. */
const SERVER = 'gh';
const FOLDER = `${PEERS}cli/`;
const programPath = (path: string) => `${FOLDER}node_modules/${path}`;
const CODEX = programPath('codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex');
const CLAUDE = programPath('@anthropic-ai/claude-code-linux-x64/claude');
const OPENCODE = programPath('opencode-linux-x64-baseline/bin/opencode');
const GEMINI = programPath('@google/gemini-cli/bundle/gemini.js');
const PROMPT = 'How much is available?';

/** Setting that a host is given. */
export interface HostSetting {
  readonly home: string;
  /** The address of the server; with a header, or without for a login. */
  readonly address: string;
  readonly bearer?: string;
  /** Address of the model service. */
  readonly model: string;
}

export interface CliHost {
  /** In test/e2e/peers/cli/package.json. */
  readonly package: string;
  readonly command: readonly string[];
  readonly environment: (setting: HostSetting) => Readonly<Record<string, string>>;
  /** Files of its home, by path. */
  readonly files: (setting: HostSetting) => Readonly<Record<string, string>>;
  /** Arguments of the command that adds the server, where a file does not. */
  readonly add?: (setting: HostSetting) => readonly string[];
  readonly login: readonly string[];
  /** A login asks for a terminal. */
  readonly needsTerminal?: true;
  /** A question before the address, answered with `y`. */
  readonly question?: RegExp;
  readonly loggedIn: RegExp;
  /** Output of `mcp list` after a login. */
  readonly listed: RegExp;
  /** The list connects with the tokens that it has, and leaves nothing behind for which the next run waits. */
  readonly listConnects?: true;
  /** Arguments of one turn with a model. */
  readonly turn: readonly string[];
  /** The folder of its tokens. */
  readonly store: string;
  /** The file with the end of its token, by which alone it refreshes; without one it refreshes when it is answered 401. */
  readonly times?: string;
}

const headersOf = ({ bearer }: HostSetting) => ({
  ...(bearer !== undefined && { headers: { Authorization: `Bearer ${bearer}` } }),
});

export const CLI_HOSTS: Readonly<Record<string, CliHost>> = {
  Codex: {
    package: 'codex-linux-x64',
    command: [CODEX],
    environment: () => ({}),
    files: ({ address, bearer, model }) => ({
      '.codex/config.toml': `
        model = "x"
        model_provider = "test"
        mcp_oauth_credentials_store = "file"
        check_for_update_on_startup = false
        analytics.enabled = false
        otel.metrics_exporter = "none"
        features.plugins = false
        [model_providers.test]
        name = "test"
        base_url = "${model}/v1"
        wire_api = "responses"
        [mcp_servers.${SERVER}]
        url = "${address}"
        ${bearer === undefined ? '' : `http_headers = { Authorization = "Bearer ${bearer}" }`}`,
    }),
    login: ['mcp', 'login', SERVER],
    loggedIn: /Successfully logged in/,
    listed: /OAuth/,
    turn: ['exec', '--skip-git-repo-check', '--json', PROMPT],
    store: '.codex',
  },
  'Claude Code': {
    package: '@anthropic-ai/claude-code-linux-x64',
    command: [CLAUDE],
    environment: ({ home, model }) => ({
      CLAUDE_CONFIG_DIR: `${home}/config`,
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      ANTHROPIC_API_KEY: 'test',
      ANTHROPIC_BASE_URL: model,
    }),
    files: () => ({}),
    add: ({ address, bearer }) => [
      ...['mcp', 'add', '--transport', 'http', SERVER, address],
      ...(bearer === undefined ? [] : ['--header', `Authorization: Bearer ${bearer}`]),
    ],
    login: ['mcp', 'login', SERVER],
    needsTerminal: true,
    loggedIn: /Authenticated with/,
    listed: /✔ Connected/,
    listConnects: true,
    turn: ['-p', PROMPT, '--allowedTools', `mcp__${SERVER}`, '--output-format', 'stream-json', '--verbose'],
    store: 'config',
  },
  OpenCode: {
    package: 'opencode-linux-x64-baseline',
    command: [OPENCODE],
    environment: () => ({ OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' }),
    files: (setting) => ({
      'opencode.json': JSON.stringify({
        mcp: { [SERVER]: { type: 'remote', url: setting.address, ...headersOf(setting) } },
        provider: {
          test: {
            npm: '@ai-sdk/openai-compatible',
            options: { baseURL: `${setting.model}/v1`, apiKey: 'test' },
            models: { x: {} },
          },
        },
      }),
    }),
    login: ['mcp', 'auth', SERVER],
    loggedIn: /Authentication successful/,
    listed: /✓ gh.*connected/,
    listConnects: true,
    turn: ['run', '-m', 'test/x', '--format', 'json', PROMPT],
    store: '.local/share/opencode',
  },
  'Gemini CLI': {
    package: '@google/gemini-cli',
    command: [process.execPath, GEMINI],
    environment: ({ model }) => ({
      // It starts itself once more for a larger heap.
      GEMINI_CLI_NO_RELAUNCH: 'true',
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
      GEMINI_API_KEY: 'test',
      GOOGLE_GEMINI_BASE_URL: model,
    }),
    files: (setting) => ({
      '.gemini/settings.json': JSON.stringify({
        mcpServers: { [SERVER]: { httpUrl: setting.address, ...headersOf(setting) } },
        security: { auth: { selectedType: 'gemini-api-key' } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false },
      }),
      '.gemini/trustedFolders.json': JSON.stringify({ [setting.home]: 'TRUST_FOLDER' }),
    }),
    // It has no command for a login, only the one of its prompt.
    login: ['-p', `/mcp auth ${SERVER}`],
    question: /Do you want to continue/,
    loggedIn: /Successfully authenticated/,
    // Its list leaves a lock, which the next run breaks after ten seconds.
    listed: /✓ gh.* Connected/,
    turn: ['-y', '-m', 'gemini-2.5-flash', '--output-format', 'stream-json', '-p', PROMPT],
    store: '.gemini',
    times: '.gemini/mcp-oauth-tokens.json',
  },
};

/** The version that is installed. */
export function versionOf({ package: name }: CliHost): string {
  const { dependencies } = JSON.parse(readFileSync(`${FOLDER}package.json`, 'utf8'));
  return /\d+\.\d+\.\d+/.exec(dependencies[name])?.[0] ?? '';
}

/** Says why hosts cannot run; false where they can. */
export const hostsUnavailable: string | false = unavailable || reason();

function reason(): string | false {
  if (!existsSync(CODEX))
    return 'not installed: run "npm ci --ignore-scripts --omit=optional" in test/e2e/peers/cli';
  // It lends a terminal.
  return lacking('script', 'ip', 'network namespaces');
}

/** Runs a host with arguments. */
export type RunHost = (args: readonly string[], inTerminal?: boolean) => Peer;

/** Writes its files, adds the server, and returns what runs the host there. */
export async function prepareHost(host: CliHost, setting: HostSetting): Promise<RunHost> {
  for (const [name, text] of Object.entries(host.files(setting))) {
    const path = join(setting.home, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  const environment = host.environment(setting);
  const run: RunHost = (args, inTerminal = false) => {
    const command = [...host.command, ...args];
    const whole = inTerminal ? ['script', '-qec', command.join(' '), '/dev/null'] : command;
    return startProgram(whole, setting.home, environment);
  };
  if (host.add !== undefined) await run(host.add(setting)).ended();
  return run;
}
