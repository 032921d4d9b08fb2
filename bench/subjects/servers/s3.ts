/** The object storage of the benches: it checks and counts what comes, and keeps the length alone of large bodies. */
import { MemoryS3 } from '../../../kit/storage/memory-s3.ts';
import { tellParent } from './listen.ts';

const storage = await MemoryS3.start({ forgets: true });
tellParent(storage.url);
