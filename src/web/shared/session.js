/** The session of a page, and its end while the page is open. Shared by both pages. */
import { useEffect, useState } from '../vendor/preact.js';
import { get, onSessionOver, post, sessionIsBack } from './api.js';
import { useLoad } from './ui.js';

/**
 * `info`: the load of /auth/v1/info. `session`: null without one. `isOver`: it has ended, and the page still shows
 * its data. `enter`: call after a log-in, `leave`: reads the session again, `logOut` ends it.
 */
export function useSession() {
  const info = useLoad(() => get('/auth/v1/info'), []);
  const [hasEnded, setEnded] = useState(false);
  useEffect(() => onSessionOver(() => setEnded(true)), []);
  const leave = async () => {
    await info.reload();
    setEnded(false);
  };
  const enter = async () => {
    await leave();
    sessionIsBack();
  };
  const logOut = async () => {
    await post('/auth/v1/logout', {});
    await leave();
  };
  const session = info.value?.session ?? null;
  return { info, session, isOver: session !== null && hasEnded, enter, leave, logOut };
}
