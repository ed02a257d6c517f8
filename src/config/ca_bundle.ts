import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** The path of a PEM file with certificates. The value is the text of the file. */
export const caBundle = () =>
  z
    .string()
    .transform((path, context) => {
      try {
        const pem = readFileSync(path, 'utf8');
        // Reads the first certificate. A file without one would make every connection fail later.
        new X509Certificate(pem);
        return pem;
      } catch (error) {
        const problem = Error.isError(error) && 'code' in error ? String(error.code) : 'unknown error';
        context.addIssue({
          code: 'custom',
          message: `${path}, which is not a readable PEM file with certificates (${problem})`,
        });
        return z.NEVER;
      }
    })
    .optional();
