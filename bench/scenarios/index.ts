/** All scenarios, in the order of `all`. */
import type { Scenario } from '../scenario.ts';
import { download, downloadRange } from './download.ts';
import { eventsIntake } from './events-intake.ts';
import { joining } from './joining.ts';
import { mcpCall } from './mcp-call.ts';
import { mcpList } from './mcp-list.ts';
import { mcpLogin } from './mcp-login.ts';
import { mixed } from './mixed.ts';
import { neighbours } from './neighbours.ts';
import { restProxy } from './rest-proxy.ts';
import { scale } from './scale.ts';
import { sessionCheck } from './session-check.ts';
import { sessions } from './sessions.ts';
import { sseFanout } from './sse-fanout.ts';
import { limiter, nodeCalls, passkey, turn } from './units.ts';
import { uploadV1, uploadV2 } from './upload.ts';
import { uploadS3 } from './upload-s3.ts';
import { webhooks } from './webhooks.ts';
import { wsProxy } from './ws-proxy.ts';

export const SCENARIOS: readonly Scenario[] = [
  turn,
  limiter,
  nodeCalls,
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
  scale,
  joining,
  wsProxy,
  uploadS3,
];
