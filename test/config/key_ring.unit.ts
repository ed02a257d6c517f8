import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { createKeyPair, createKeyRing, deriveKeys, SecretUnreadable } from '../../src/config/key_ring.ts';
import { SettingsError } from '../../src/config/settings.ts';

const symmetric = (id: string) => `${id}:${randomBytes(32).toString('base64')}`;
const shared = symmetric('shared');
const pair = createKeyPair('2026');
const server = createKeyRing(`${pair.public},${shared}`);
const worker = createKeyRing(`${pair.private},${shared}`);

describe('a seal that servers make', () => {
  it('is opened by workers, and not by servers', () => {
    const sealed = server.seal('the secret', 'location');
    expect(worker.open(sealed, 'location')).toBe('the secret');
    expect(() => server.open(sealed, 'location')).toThrow(SecretUnreadable);
    expect(() => server.open(sealed, 'location')).toThrow(/"2026".*private/);
  });

  it('differs each time, and hides the secret', () => {
    const [one, other] = [server.seal('the secret', 'location'), server.seal('the secret', 'location')];
    expect(one).not.toBe(other);
    expect(`${one}${Buffer.from(one.split(':')[1] ?? '', 'base64').toString('latin1')}`).not.toContain(
      'secret',
    );
  });

  it('starts with the id of the ring, which tells what has to be rotated', () => {
    expect(server.seal('x', 'location').startsWith(`${worker.keyId}:`)).toBe(true);
    expect(worker.seal('x', 'location').startsWith(`${server.keyId}:`)).toBe(true);
    expect(server.keyId).not.toBe(createKeyRing(`${pair.public},${symmetric('other')}`).keyId);
  });

  it('is bound to its location', () => {
    const sealed = server.seal('the secret', 'location');
    expect(() => worker.open(sealed, 'elsewhere')).toThrow(SecretUnreadable);
  });

  it('is not opened after a change of any byte', () => {
    const [id = '', encoded = ''] = server.seal('s', 'location').split(':');
    const bytes = Buffer.from(encoded, 'base64');
    // The first 16 bytes are the fingerprint, which only comparisons read.
    for (let index = 16; index < bytes.length; index += 1) {
      const changed = Buffer.from(bytes);
      changed[index] = (changed[index] ?? 0) ^ 1;
      // The highest bit of a public key has no meaning (RFC 7748), but the key is part of the derivation.
      expect(() => worker.open(`${id}:${changed.toString('base64')}`, 'location')).toThrow(SecretUnreadable);
    }
    expect(() => worker.open(`${id}:${bytes.subarray(0, 20).toString('base64')}`, 'location')).toThrow(
      SecretUnreadable,
    );
  });

  it('is not opened by another private key of the same id', () => {
    const other = createKeyRing(`${createKeyPair('2026').private},${shared}`);
    expect(() => other.open(server.seal('s', 'location'), 'location')).toThrow(SecretUnreadable);
  });
});

describe('a rotation', () => {
  const old = createKeyRing(shared).seal('the secret', 'location');

  it.each([
    ['from a symmetric key to a pair', worker],
    ['from a pair to a symmetric key', createKeyRing(`${symmetric('new')},${pair.private},${shared}`)],
  ])('opens what was sealed before: %s', (_, ring) => {
    expect(ring.open(old, 'location')).toBe('the secret');
    expect(ring.open(server.seal('the secret', 'location'), 'location')).toBe('the secret');
    expect(ring.open(ring.seal('the secret', 'location'), 'location')).toBe('the secret');
  });
});

describe('the comparison of two sealed secrets', () => {
  const seal = (ring: typeof server, secret = 'the secret') => ring.seal(secret, 'location');

  it('is possible without the private key, while both have the symmetric key', () => {
    expect(server.isSame(seal(server), seal(server), 'location')).toBe(true);
    expect(server.isSame(seal(server), seal(worker), 'location')).toBe(true);
    expect(server.isSame(seal(server), seal(server, 'another'), 'location')).toBe(false);
  });

  it('is possible with one that was sealed before the pair', () => {
    const before = seal(createKeyRing(shared));
    expect(server.isSame(before, seal(server), 'location')).toBe(true);
    expect(server.isSame(seal(server, 'another'), before, 'location')).toBe(false);
  });

  it('is possible for workers without a symmetric key, and not for servers', () => {
    const [sealing, opening] = [createKeyRing(pair.public), createKeyRing(pair.private)];
    expect(opening.isSame(seal(sealing), seal(sealing), 'location')).toBe(true);
    expect(() => sealing.isSame(seal(sealing), seal(sealing), 'location')).toThrow(SecretUnreadable);
  });
});

describe('a ring of keys', () => {
  it('says whether it opens what it seals', () => {
    expect([server.opens, worker.opens, createKeyRing(shared).opens]).toEqual([false, true, true]);
  });

  it('derives other keys from symmetric ones only', () => {
    expect(deriveKeys(`${pair.public},${shared}`, 'purpose')).toEqual(
      deriveKeys(`${pair.private},${shared}`, 'purpose'),
    );
    expect(() => deriveKeys(pair.public, 'purpose')).toThrow(SettingsError);
    expect(() => deriveKeys(pair.public, 'purpose')).toThrow(/symmetric/);
  });

  it.each([
    ['a:public:AAAA', 'short'],
    [`a:secret:${randomBytes(32).toString('base64')}`, 'of an unknown kind'],
    [`a:public:${Buffer.alloc(32).toString('base64')}`, 'a point of low order'],
    [`${pair.public},${pair.private}`, 'twice with one id'],
  ])('rejects the key %s, which is %s', (setting) => {
    expect(() => createKeyRing(setting)).toThrow(SettingsError);
    expect(() => createKeyRing(setting)).not.toThrow(setting);
  });

  it('takes the raw keys of other tools', () => {
    const { privateKey, publicKey } = generateKeyPairSync('x25519');
    const raw = (text: string | undefined) => Buffer.from(text ?? '', 'base64url').toString('base64');
    const sealed = createKeyRing(`a:public:${raw(publicKey.export({ format: 'jwk' }).x)}`).seal('s', 'l');
    expect(createKeyRing(`a:private:${raw(privateKey.export({ format: 'jwk' }).d)}`).open(sealed, 'l')).toBe(
      's',
    );
  });
});
