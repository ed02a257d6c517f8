import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { manifestJsonSchema } from '../../src/destination/manifest_schema.ts';

const file = join(import.meta.dirname, '../../src/destination/manifest.schema.json');

describe('the JSON Schema of manifests', () => {
  it('is what exportd itself reads them by', () => {
    // Made by: node -e "import('./src/destination/manifest_schema.ts').then(m => console.log(JSON.stringify(m.manifestJsonSchema())))"
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(JSON.parse(JSON.stringify(manifestJsonSchema())));
  });
});
