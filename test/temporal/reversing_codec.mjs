import { Buffer } from 'node:buffer';

const encoding = Buffer.from('binary/reversed');

const isReversed = ({ metadata }) => Buffer.from(metadata?.encoding ?? []).equals(encoding);

/** A payload codec as an operator may have one: it hides payloads by reversing their bytes. */
export const payloadCodecs = [
  {
    encode: (payloads) =>
      Promise.resolve(
        payloads.map((payload) => ({
          metadata: { encoding, inner: Buffer.from(payload.metadata?.encoding ?? []) },
          data: Buffer.from(payload.data ?? []).reverse(),
        })),
      ),
    decode: (payloads) =>
      Promise.resolve(
        payloads.map((payload) =>
          isReversed(payload)
            ? { metadata: { encoding: payload.metadata.inner }, data: Buffer.from(payload.data).reverse() }
            : payload,
        ),
      ),
  },
];
