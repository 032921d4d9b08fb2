/** All scenarios, in the order of `all`. */
import type { Scenario } from './scenario.ts';
import { download, downloadRange } from './scenarios/download.ts';
import { eventsIntake } from './scenarios/events-intake.ts';
import { limiter } from './scenarios/limiter.ts';
import { mcpCall } from './scenarios/mcp-call.ts';
import { mcpList } from './scenarios/mcp-list.ts';
import { mcpLogin } from './scenarios/mcp-login.ts';
import { mixed } from './scenarios/mixed.ts';
import { neighbours } from './scenarios/neighbours.ts';
import { passkey } from './scenarios/passkey.ts';
import { restProxy } from './scenarios/rest-proxy.ts';
import { sessionCheck } from './scenarios/session-check.ts';
import { sessions } from './scenarios/sessions.ts';
import { sseFanout } from './scenarios/sse-fanout.ts';
import { turn } from './scenarios/turn.ts';
import { uploadV1, uploadV2 } from './scenarios/upload.ts';
import { webhooks } from './scenarios/webhooks.ts';

export const SCENARIOS: readonly Scenario[] = [
  turn,
  limiter,
  mcpCall,
  mcpList,
  sessionCheck,
  restProxy,
  mcpLogin,
  passkey,
  uploadV1,
  uploadV2,
  download,
  downloadRange,
  eventsIntake,
  webhooks,
  sseFanout,
  mixed,
  neighbours,
  sessions,
];
