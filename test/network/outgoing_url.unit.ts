import { describe, expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';
import { outgoingUrlProblem, publicAddressLookup } from '../../src/network/outgoing_url.ts';

/** The value of the setting as processes read it. */
const allowed = (value: string) =>
  readSettings({ DATABASE_URL: 'postgres://localhost/exportd', EXPORTD_ALLOW_PRIVATE_ENDPOINTS: value })
    .EXPORTD_ALLOW_PRIVATE_ENDPOINTS;

const isAllowed = (address: string, value: string): boolean => {
  const host = address.includes(':') ? `[${address}]` : address;
  return outgoingUrlProblem(`http://${host}/`, allowed(value)) === null;
};

describe('a list of networks in EXPORTD_ALLOW_PRIVATE_ENDPOINTS', () => {
  it.each([
    ['an address of a network', '10.20.3.4', '10.20.0.0/16', true],
    ['an address of the second network', 'fd00:12::5', '10.20.0.0/16, fd00:12::/64', true],
    ['a single address', '192.168.7.9', '192.168.7.9', true],
    ['its neighbour', '192.168.7.10', '192.168.7.9', false],
    ['another private network', '10.21.0.1', '10.20.0.0/16', false],
    ['another IPv6 network', 'fd00:13::1', 'fd00:12::/64', false],
    ['an address that is written as IPv6', '::ffff:10.20.3.4', '10.20.0.0/16', true],
    ['loopback unless it is listed', '127.0.0.1', '10.20.0.0/16', false],
    ['loopback when it is listed', '::1', 'loopback,10.20.0.0/16', true],
    ['localhost when it is listed', 'localhost', 'loopback,10.20.0.0/16', true],
    ['every public address', '93.184.215.14', '10.20.0.0/16', true],
  ])('decides about %s', (_, address, value, expected) => {
    expect(isAllowed(address, value)).toBe(expected);
  });

  it('decides about the addresses that a name has when it connects', async () => {
    const resolve = (value: string) =>
      new Promise<string | undefined>((done) => {
        publicAddressLookup(allowed(value), () => new Error('blocked'))('localhost', {}, (error) => {
          done(error?.message);
        });
      });
    expect([
      await resolve('10.20.0.0/16'),
      await resolve('loopback'),
      await resolve('127.0.0.0/8,::1'),
    ]).toEqual(['blocked', undefined, undefined]);
  });

  it.each([
    ['10.20.0.0/33', /10\.20\.0\.0\/33/],
    ['10.20.0/16', /10\.20\.0\/16/],
    ['fd00::/129', /fd00::\/129/],
    ['10.0.0.0/8,internal', /internal/],
    ['10.0.0.0/8,true', /true/],
    ['169.254.169.254', /169\.254\.169\.254.*never/],
    ['10.0.0.0/8,fe80::/10', /fe80::\/10.*never/],
  ])('rejects %s, and names it', (value, message) => {
    expect(() => allowed(value)).toThrow(message);
  });
});

describe('EXPORTD_ALLOW_PRIVATE_ENDPOINTS=true', () => {
  it.each([
    '127.0.0.1',
    '::1',
    '10.1.2.3',
    '172.20.0.1',
    '192.168.0.1',
    '100.64.0.1',
    'fd12::1',
    'localhost',
  ])('allows %s', (address) => {
    expect(isAllowed(address, 'true')).toBe(true);
  });
});

describe('link-local addresses and the metadata services of clouds', () => {
  const addresses = [
    '169.254.169.254',
    '169.254.170.2',
    '::ffff:169.254.169.254',
    '64:ff9b::a9fe:a9fe',
    '2002:a9fe:a9fe::1',
    'fe80::1',
    'fd00:ec2::254',
    'fd20:ce::254',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
    '0.0.0.0',
  ];
  it.each(addresses)('are never allowed: %s', (address) => {
    for (const value of ['true', '0.0.0.0/0,::/0', 'loopback', 'false'])
      expect([value, isAllowed(address, value)]).toEqual([value, false]);
  });
});
