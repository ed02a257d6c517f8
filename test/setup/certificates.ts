import { generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';
import { isIP } from 'node:net';

/** A certificate and its private key, as PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** A certificate authority that no machine trusts unless it is told to. */
interface CertificateAuthority {
  /** Its certificate, as PEM: what a client has to trust. */
  readonly certificate: string;
  /** Issues a certificate for host names and addresses, for a server or a client. */
  issue(...names: readonly string[]): KeyPair;
}

/** Creates a certificate authority. Node can read certificates but not create them, so this writes their ASN.1. */
export function createCertificateAuthority(name = 'exportd test CA'): CertificateAuthority {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    certificate: signedCertificate(name, privateKey, { name, publicKey, extension: caExtension }),
    issue: (...names) => {
      const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      return {
        certificate: signedCertificate(name, privateKey, {
          name: names[0] ?? 'localhost',
          publicKey: pair.publicKey,
          extension: namesExtension(names),
        }),
        key: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      };
    },
  };
}

/** Encodes one value: its tag, its length and its content. */
function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const size = content.length;
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}
const sequence = (...contents: readonly Buffer[]): Buffer => der(0x30, ...contents);
const octets = (...contents: readonly Buffer[]): Buffer => der(0x04, ...contents);
const objectId = (hexadecimal: string): Buffer => der(0x06, Buffer.from(hexadecimal, 'hex'));
const isTrue = der(0x01, Buffer.from([0xff]));

const ecdsaWithSha256 = sequence(objectId('2a8648ce3d040302'));
const commonName = objectId('550403');
/** Basic constraints, critical: a certificate authority. */
const caExtension = sequence(objectId('551d13'), isTrue, octets(sequence(isTrue)));

/** Subject alternative names: host names and addresses. */
const namesExtension = (names: readonly string[]): Buffer =>
  sequence(
    objectId('551d11'),
    octets(
      sequence(
        ...names.map((name) =>
          isIP(name) === 4
            ? der(0x87, Buffer.from(name.split('.').map(Number)))
            : der(0x82, Buffer.from(name)),
        ),
      ),
    ),
  );

function signedCertificate(
  issuer: string,
  issuerKey: KeyObject,
  subject: { readonly name: string; readonly publicKey: KeyObject; readonly extension: Buffer },
): string {
  const nameOf = (text: string): Buffer =>
    sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from(text)))));
  const time = (year: number): Buffer => der(0x17, Buffer.from(`${String(year % 100)}0101000000Z`));
  const thisYear = new Date().getUTCFullYear();
  const toBeSigned = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1]), randomBytes(8)),
    ecdsaWithSha256,
    nameOf(issuer),
    sequence(time(thisYear - 1), time(thisYear + 2)),
    nameOf(subject.name),
    subject.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(subject.extension)),
  );
  const signature = sign('sha256', toBeSigned, issuerKey);
  const certificate = sequence(toBeSigned, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature));
  const base64 = certificate.toString('base64').replace(/.{64}/g, '$&\n').trimEnd();
  return `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`;
}
