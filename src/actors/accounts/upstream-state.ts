/** Credentials of an account for other MCP servers: events, and how they change the state. Null: it never had any. */
import type { SealedKey } from '../../domain/apps.ts';
import {
  UPSTREAM_LOGINS_MAX,
  type UpstreamAccounts,
  type UpstreamCredential,
  type UpstreamLogin,
} from '../../domain/oauth/upstream-credentials.ts';

export type UpstreamEvent =
  | { readonly type: 'upstreamLoginOpened'; readonly login: UpstreamLogin; readonly utcMs: number }
  | { readonly type: 'upstreamLoginTaken'; readonly stateHash: string }
  | { readonly type: 'upstreamConnected'; readonly credential: UpstreamCredential }
  | {
      readonly type: 'upstreamRefreshing';
      readonly server: string;
      readonly commandId: string;
      readonly utcMs: number;
    }
  | { readonly type: 'upstreamRefreshAwaited'; readonly server: string; readonly commandId: string }
  | {
      readonly type: 'upstreamRenewed';
      readonly server: string;
      readonly sealed: SealedKey;
      readonly expiresMs: number | null;
    }
  | { readonly type: 'upstreamRefreshFailed'; readonly server: string }
  | { readonly type: 'upstreamEnded'; readonly server: string };

export function isUpstreamEvent(event: { readonly type: string }): event is UpstreamEvent {
  return event.type.startsWith('upstream');
}

const NONE: UpstreamAccounts = { credentials: [], logins: [] };

export function evolveUpstreams(
  accounts: UpstreamAccounts | null,
  event: UpstreamEvent,
): UpstreamAccounts | null {
  const { credentials, logins } = accounts ?? NONE;
  switch (event.type) {
    case 'upstreamLoginOpened': {
      const open = logins.filter(({ endsMs }) => event.utcMs < endsMs);
      return { credentials, logins: [...open, event.login].slice(-UPSTREAM_LOGINS_MAX) };
    }
    case 'upstreamLoginTaken':
      return kept(
        credentials,
        logins.filter(({ stateHash }) => stateHash !== event.stateHash),
      );
    case 'upstreamConnected':
      return { credentials: [...without(credentials, event.credential.server), event.credential], logins };
    case 'upstreamRefreshing': {
      const refreshing = { commandId: event.commandId, sinceMs: event.utcMs, waiting: [] };
      return kept(changed(credentials, event.server, { refreshing }), logins);
    }
    case 'upstreamRefreshAwaited': {
      const refreshing = credentials.find(({ server }) => server === event.server)?.refreshing ?? null;
      if (refreshing === null) return accounts;
      const waiting = [...refreshing.waiting, event.commandId];
      return kept(changed(credentials, event.server, { refreshing: { ...refreshing, waiting } }), logins);
    }
    case 'upstreamRenewed': {
      const { server, sealed, expiresMs } = event;
      return kept(changed(credentials, server, { sealed, expiresMs, refreshing: null }), logins);
    }
    case 'upstreamRefreshFailed':
      return kept(changed(credentials, event.server, { refreshing: null }), logins);
    case 'upstreamEnded':
      return kept(without(credentials, event.server), logins);
  }
}

function kept(
  credentials: UpstreamAccounts['credentials'],
  logins: UpstreamAccounts['logins'],
): UpstreamAccounts | null {
  return credentials.length === 0 && logins.length === 0 ? null : { credentials, logins };
}

function without(
  credentials: UpstreamAccounts['credentials'],
  server: string,
): UpstreamAccounts['credentials'] {
  return credentials.filter((credential) => credential.server !== server);
}

function changed(
  credentials: UpstreamAccounts['credentials'],
  server: string,
  change: Partial<UpstreamCredential>,
): UpstreamAccounts['credentials'] {
  return credentials.map((credential) =>
    credential.server === server ? { ...credential, ...change } : credential,
  );
}
