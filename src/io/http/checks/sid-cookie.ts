/** Header values that set and clear the `sid` cookie of browser sessions (spec 5.3). */
import { SECOND_MS } from '../../../domain/time.ts';
import type { HeaderList } from '../table/route.ts';

const SID_COOKIE = 'sid';

/** Expires with the session's longest life. No Domain attribute: other hosts must not receive it. */
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
