/** Renewal of the certificate: what the new listener gets, and when. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createRenewal } from '../../src/bootstrap/tls.ts';
import { createLog } from '../../src/io/observability/log.ts';
import { makeCertificate } from '../support/certificate.ts';

t.test(
  'renewal: a new certificate bounds the receive buffers of its listener, the same one does nothing',
  async (t) => {
    const folder = t.testdir({});
    const tls = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    const put = () => {
      const { certificate, key } = makeCertificate();
      writeFileSync(tls.cert, certificate);
      writeFileSync(tls.key, key);
    };
    put();
    const steps: string[] = [];
    const renew = createRenewal({
      tls,
      server: {
        port: 1,
        async renew(opened) {
          steps.push('listener');
          await opened();
        },
      },
      boundBuffers: async () => void steps.push('buffers'),
      log: createLog('silent'),
    });
    await renew();
    t.same(steps, []);
    put();
    await renew();
    t.same(steps, ['listener', 'buffers']);
  },
);
