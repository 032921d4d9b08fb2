/**
 * A page on the gateway's own origin that answers its challenges with `navigator.credentials`, and the virtual
 * authenticators of the browser behind it.
 */
import { readFileSync } from 'node:fs';
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core';
import { PAGE_WAIT_MS } from './browser.ts';

/** Path that the test answers itself: a gateway never sees it. */
const PAGE_PATH = '/passkey-test-page';

/** The script of docs/passkeys.md, as it stands there. */
function documentedScript(): string {
  const [, script] = /```js\n(.*?)```/s.exec(readFileSync('docs/passkeys.md', 'utf8')) ?? [];
  if (script === undefined) throw new Error('docs/passkeys.md holds no script');
  return script;
}

/** A refusal of the browser comes back as `{thrown}`. */
const ATTEMPT = `
const attempt = async (act) => {
  try { return await act(); } catch (error) { return { thrown: error.name }; }
};
`;

export interface PageAnswer {
  readonly status?: number;
  readonly thrown?: string;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
}

export interface AuthenticatorOptions {
  readonly protocol: 'ctap2' | 'u2f';
  readonly transport: 'internal' | 'usb';
  readonly hasResidentKey: boolean;
  readonly hasUserVerification: boolean;
  readonly isUserVerified: boolean;
}

export const PLATFORM: AuthenticatorOptions = {
  protocol: 'ctap2',
  transport: 'internal',
  hasResidentKey: true,
  hasUserVerification: true,
  isUserVerified: true,
};
/** A hardware key of the first generation: no PIN, nothing discoverable. */
export const U2F: AuthenticatorOptions = {
  protocol: 'u2f',
  transport: 'usb',
  hasResidentKey: false,
  hasUserVerification: false,
  isUserVerified: false,
};

/** Options that the page gives the browser beside the gateway's, or in their place. */
export interface LoginWay {
  readonly credentialIds?: readonly string[];
  readonly mediation?: 'conditional';
  readonly options?: { readonly userVerification: 'discouraged' };
}

export interface PasskeyPage {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly cdp: CDPSession;
  /** A further authenticator; its id. */
  plugIn(options?: AuthenticatorOptions): Promise<string>;
  unplug(authenticatorId: string): Promise<void>;
  register(): Promise<PageAnswer>;
  login(how?: LoginWay): Promise<PageAnswer>;
  /** The body for the gateway, not sent. */
  assertion(): Promise<object>;
  send(path: string, body?: object): Promise<PageAnswer>;
  /** The `sid` cookie; undefined without one. */
  sid(): Promise<string | undefined>;
  close(): Promise<void>;
}

export function pageHtml(gateway: string): string {
  const script = `const gateway = ${JSON.stringify(gateway)};\n${documentedScript()}${ATTEMPT}`;
  return `<!doctype html><meta charset="utf-8"><title>Passkeys</title><script>${script}</script>`;
}

/**
 * A fresh profile with a page on `origin` that talks to `gateway`. A page elsewhere must be served there in earnest
 * (`pageHtml`): one that only the test fulfils has no address, and browsers keep those away from this machine.
 */
export async function openPasskeyPage(
  browser: Browser,
  origin: string,
  gateway = origin,
): Promise<PasskeyPage> {
  const context = await browser.newContext();
  context.setDefaultTimeout(PAGE_WAIT_MS);
  const page = await context.newPage();
  if (gateway === origin) {
    const answer = { contentType: 'text/html', body: pageHtml(gateway) };
    await page.route(`${origin}${PAGE_PATH}`, (route) => route.fulfill(answer));
  }
  await page.goto(`${origin}${PAGE_PATH}`);
  const cdp = await context.newCDPSession(page);
  await cdp.send('WebAuthn.enable', { enableUI: false });
  const run = <Result>(call: string, ...args: unknown[]): Promise<Result> => {
    const list = args.map((each) => JSON.stringify(each)).join(', ');
    return page.evaluate(`attempt(() => ${call}(${list}))`) as Promise<Result>;
  };
  return {
    context,
    page,
    cdp,
    async plugIn(options = PLATFORM) {
      const version = options.protocol === 'ctap2' ? { ctap2Version: 'ctap2_1' as const } : {};
      const all = { ...options, ...version, automaticPresenceSimulation: true };
      return (await cdp.send('WebAuthn.addVirtualAuthenticator', { options: all })).authenticatorId;
    },
    unplug: async (authenticatorId) => {
      await cdp.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId });
    },
    register: () => run('register', 'Ada'),
    login: (how = {}) => run('logIn', how),
    assertion: () => run('usePasskey'),
    send: (path, body) => (body === undefined ? run('send', path) : run('send', path, body)),
    sid: async () => (await context.cookies(gateway)).find(({ name }) => name === 'sid')?.value,
    close: () => context.close(),
  };
}
