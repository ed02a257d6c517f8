import { describe, expect, it } from '@jest/globals';
import { DestinationError, type DestinationErrorOptions } from '../../src/destination/destination.ts';
import { toAssumeRoleError, withOwner } from '../../src/destination/errors.ts';
import { classifyError } from '../../src/failures/classify_error.ts';

const own = { aws_access_key_id: 'AKIAIOSFODNN7EXAMPLE', endpoint_url: 'https://minio.example' };
const machine = { aws_access_key_id: undefined, endpoint_url: null };
const failureOf = (type: string, options: DestinationErrorOptions = { transient: false }) =>
  new DestinationError(type, 'message', options);

describe('the owner of an error of a destination', () => {
  it.each([
    ['RequestTimeTooSkewed', own, 'operator'],
    ['ExpiredToken', own, 'operator'],
    ['ExpiredToken', machine, 'operator'],
    ['InvalidAccessKeyId', own, 'tenant'],
    ['InvalidAccessKeyId', machine, 'operator'],
    ['SignatureDoesNotMatch', own, 'tenant'],
    ['SignatureDoesNotMatch', machine, 'operator'],
    ['CredentialsProviderError', machine, 'operator'],
    ['TlsError', own, 'tenant'],
    ['TlsError', machine, 'operator'],
    ['AccessDenied', machine, 'tenant'],
    ['NoSuchBucket', machine, 'tenant'],
    ['QuotaExceeded', own, 'tenant'],
  ])('%s with %j: %s', (type, config, owner) => {
    const failure = withOwner(failureOf(type), config);
    expect(failure.type).toBe(type);
    expect(classifyError(failure)).toMatchObject({ owner, permanent: owner === 'tenant' });
  });

  it('is nobody during an outage', () => {
    expect(withOwner(failureOf('S3Unreachable', { transient: true }), machine).owner).toBe('nobody');
  });

  it.each([
    ['ExpiredTokenException', true, 'operator'],
    ['ExpiredTokenException', false, 'tenant'],
    ['RequestExpired', false, 'operator'],
    ['CredentialsProviderError', true, 'operator'],
    ['AccessDenied', true, 'tenant'],
  ])('%s when a role is assumed, by the machine: %s; owner: %s', (name, usesMachine, owner) => {
    const error = Object.assign(new Error('secret'), { name, $metadata: { httpStatusCode: 403 } });
    expect(toAssumeRoleError(error, { usesMachine }).owner).toBe(owner);
  });
});
