/** The `sid` cookie of browser sessions: the two header values that set it and take it back (auth.md). */
import { SECOND_MS } from '../../domain/time.ts';
import type { HeaderList } from './route.ts';

const SID_COOKIE = 'sid';

/** Lives as long as the session may at most. No Domain attribute (auth.md A15). */
export function setSid(token: string, createdMs: number, expiresMs: number, secure: boolean): HeaderList {
  const maxAgeSeconds = Math.max(0, Math.floor((expiresMs - createdMs) / SECOND_MS));
  return [['Set-Cookie', cookie(token, maxAgeSeconds, secure)]];
}

export function clearSid(secure: boolean): HeaderList {
  return [['Set-Cookie', cookie('', 0, secure)]];
}

function cookie(value: string, maxAgeSeconds: number, secure: boolean): string {
  const attributes = `Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAgeSeconds}`;
  return `${SID_COOKIE}=${value}; ${attributes}${secure ? '; Secure' : ''}`;
}
