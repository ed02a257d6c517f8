import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { testS3 } from '../../src/destination/bucket_test.ts';
import { parseS3Config } from '../../src/destination/config.ts';
import { DestinationError } from '../../src/destination/destination.ts';
import { toDestinationError } from '../../src/destination/errors.ts';
import { createCertificateAuthority } from '../setup/certificates.ts';
import { fromSetUp } from '../setup/environment.ts';
import { openTlsProxy, type TlsProxy } from '../setup/tls_proxy.ts';
import { useTestBucket } from '../setup/use_test_bucket.ts';
import { configOf, requestError, s3Settings } from './bucket_requests.ts';

const authority = createCertificateAuthority();
const publicAuthority = createCertificateAuthority('a public CA');
const bucket = useTestBucket();
let trusting: Record<string, string>;
const proxies: TlsProxy[] = [];

beforeAll(() => {
  const path = join(mkdtempSync(join(fromSetUp('EXPORTD_TEST_FOLDER'), 'tls-')), 'authority.pem');
  writeFileSync(path, authority.certificate);
  trusting = { EXPORTD_S3_CA_BUNDLE: path };
});
afterAll(() => Promise.all(proxies.map((proxy) => proxy.close())));

/** Starts a server of the bucket with TLS, and returns a config of the bucket there. */
async function configBehind(issuer: typeof authority, name = 'localhost'): Promise<object> {
  const proxy = await openTlsProxy(bucket.endpoint, issuer.issue(name));
  proxies.push(proxy);
  return configOf(bucket, { endpoint_url: `https://localhost:${proxy.port}` });
}

describe('an S3 server with a certificate of its own CA', () => {
  it('is used with EXPORTD_S3_CA_BUNDLE', async () => {
    const settings = s3Settings({ ...trusting, EXPORTD_DESTINATION_TEST_TIMEOUT: '30s' });
    const { steps } = await testS3(parseS3Config(await configBehind(authority), settings), settings);
    expect(steps.map(({ result }) => result.status)).toEqual(steps.map(() => 'Passed'));
  });

  it('is rejected without it, and when the certificate is of another host', async () => {
    const withoutBundle = await requestError(await configBehind(authority), s3Settings());
    const otherHost = await requestError(
      await configBehind(authority, 'other.example'),
      s3Settings(trusting),
    );
    // In Jest the SDK replaces errors of Node's own realm, and loses their codes.
    expect([withoutBundle, otherHost]).toEqual([expect.any(DestinationError), expect.any(DestinationError)]);
  });

  it.each(['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'SELF_SIGNED_CERT_IN_CHAIN', 'ERR_TLS_CERT_ALTNAME_INVALID'])(
    'is reported with the setting: %s',
    (code) => {
      expect(toDestinationError(Object.assign(new Error('TLS'), { code }), 'HeadBucket')).toMatchObject({
        type: 'TlsError',
        message: expect.stringContaining('EXPORTD_S3_CA_BUNDLE'),
      });
    },
  );

  it('is trusted besides the CAs that Node trusts', async () => {
    const trusted = getCACertificates('default');
    setDefaultCACertificates([...trusted, publicAuthority.certificate]);
    try {
      const path = join(mkdtempSync(join(fromSetUp('EXPORTD_TEST_FOLDER'), 'tls-')), 'another.pem');
      writeFileSync(path, createCertificateAuthority('another CA').certificate);
      const settings = s3Settings({ EXPORTD_S3_CA_BUNDLE: path });
      expect(await requestError(await configBehind(publicAuthority), settings)).toBeNull();
    } finally {
      setDefaultCACertificates(trusted);
    }
  });
});
