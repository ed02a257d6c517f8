// Writes the page of documented names next to the functions of the dialect: node src/dialect/test/write_names_page.ts
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { namesPage } from './reference_functions.ts';

writeFileSync(join(import.meta.dirname, '../functions/names.md'), namesPage());
