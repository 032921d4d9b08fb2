/** The list of actor kinds. A kind that is not here takes no command and cannot be replayed. */

import { user } from './accounts/user.ts';
import { mcpServer } from './admin/mcp-server.ts';
import { settings } from './admin/settings.ts';
import { staff } from './admin/staff.ts';
import { app } from './apps/app.ts';
import { deliveryLog } from './apps/delivery-log.ts';
import { codeSender } from './codes/code-sender.ts';
import { oneTimeCodes } from './codes/one-time-codes.ts';
import { upload } from './files/v1/upload.ts';
import { uploadSlots } from './files/v1/upload-slots.ts';
import { draft } from './files/v2/draft.ts';
import type { AnyKind } from './runtime/actor.ts';

export const KINDS: readonly AnyKind[] = [
  app,
  codeSender,
  oneTimeCodes,
  deliveryLog,
  draft,
  mcpServer,
  settings,
  staff,
  upload,
  uploadSlots,
  user,
];
