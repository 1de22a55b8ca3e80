"""What a secret looks like in a file: what is hidden, and what is not touched.

Secrets are put together here, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import random
import string
import time
from pathlib import Path

import pytest

from windrow.redaction import is_secret_file, is_secret_text, redact_secrets

CHANCE = random.Random(7)


def made(length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return "".join(CHANCE.choices(alphabet, k=length - 3)) + "a7Q"


UPPER = string.ascii_uppercase + "234567"
ISSUED = {
    "AWS": "AKIA" + "".join(CHANCE.choices(UPPER, k=16)),
    "GitHub": "ghp" + "_" + made(36),
    "GitHub, fine-grained": "github" + "_pat_" + made(60),
    "GitLab": "glpat" + "-" + made(20),
    "Slack": "xoxb" + "-" + made(40),
    "Slack hook": "hooks.slack.com/" + "services/T" + made(8) + "/B" + made(8) + "/" + made(24),
    "Stripe": "sk" + "_live_" + made(24),
    "OpenAI": "sk" + "-proj-" + made(48),
    "Anthropic": "sk" + "-ant-api03-" + made(60),
    "Google": "AIza" + made(35),
    "npm": "npm" + "_" + made(36),
    "JWT": f"eyJ{made(20)}.eyJ{made(60)}.{made(43)}",
    "Hugging Face": "hf" + "_" + made(34),
    "Terraform": made(14) + ".atlas" + "v1." + made(64),
    "Discord": "M" + made(24) + "." + made(6) + "." + made(30),
    "Azure": "sig" + "=" + made(43) + "%3D",
}
PEM = "-----BEGIN {0}PRIVATE KEY-----{1}{2}{1}{3}{1}-----END {0}PRIVATE KEY-----"
RANDOM = made(32)
PLANTED = {
    "env": f"DB_PASSWORD={RANDOM}\r\nX=1\r\n",
    "export": f"export TOKEN='{RANDOM}'\n",
    "yaml": f"db:\n  password: {RANDOM}\n",
    "yaml block": f"password: |\n  {RANDOM}\n",
    "json": f'{{"api_key": "{RANDOM}", "b": 1}}',
    "json in one long line": '{"a":"' + "x" * 200_000 + f'","clientSecret":"{RANDOM}"}}',
    "toml": f'secret_key = "{RANDOM}"\n',
    "ini": f"[a]\npasswd = {RANDOM}\n",
    "properties": f"spring.datasource.password={RANDOM}\n",
    "hcl": f'variable "db_password" {{\n  default = "{RANDOM}"\n}}\n',
    "dockerfile": f"ENV API_TOKEN {RANDOM}\n",
    "xml": f"<password>{RANDOM}</password>",
    "xml attribute": f'<add key="ApiKey" value="{RANDOM}"/>',
    "kubernetes": f"- name: DB_PASSWORD\n  value: {RANDOM}\n",
    "python": f'SECRET_KEY = "{RANDOM}"\n',
    "javascript": f"const apiKey = '{RANDOM}';\n",
    "pass": f"[db]\nansible_ssh_pass={RANDOM}\n",
    "pass of a shell": f"export DB_PASS={RANDOM}\n",
    "pass of a field": f"dbPass: '{RANDOM}'\n",
    "kubeconfig": f"kind: Config\nusers:\n- user:\n    client-key-data: {RANDOM}\n",
    "url": f"url = postgres://app:{RANDOM}@db/app\n",
    "php": f"define('DB_PASSWORD', '{RANDOM}');\n",
    "hcl with a type": f'variable "db_password" {{\n  type = string\n  default = "{RANDOM}"\n}}\n',
    "netrc": f"machine example.org login ann password {RANDOM}\n",
    "curl": f"curl -sS -u ann:{RANDOM} https://example.org\n",
    "login of docker": f'{{"auths": {{"a": {{"auth": "{RANDOM}"}}}}}}',
    "redis": f"port 6379\nrequirepass {RANDOM}\n",
    "mysql": f"mysqldump -uann -p{RANDOM} shop\n",
    "sshpass": f"sshpass -p {RANDOM} ssh host\n",
    "sql": f"CREATE USER ann IDENTIFIED BY '{RANDOM}';\n",
    "powershell": f'ConvertTo-SecureString "{RANDOM}" -AsPlainText\n',
    "vault": f"Unseal Key 1: {RANDOM}\n",
    "php with spaces": f"define('AUTH_KEY',         '{RANDOM}');\n",
    "wlan": f'psk="{RANDOM}"\n',
    "token in a header": f'curl -H "Authorization: token {RANDOM}"',
    "cookie": f"Cookie: session={RANDOM}\n",
    "variable": f"APP=shop\nSTRIPE_SIGNING={RANDOM}\n",
    "prose": f"The password of the staging database is `{RANDOM}`.\n",
    "column": f"url,username,password\nhttps://example.org,ann,{RANDOM}\n",
    "short password": "{'PASSWORD': 'rgI3jzHMjID8'}".replace("rgI3jzHMjID8", RANDOM[-12:]),
    "header": f'curl -H "Authorization: Bearer {RANDOM}"',
}


@pytest.mark.parametrize("secret", ISSUED.values(), ids=ISSUED.keys())
@pytest.mark.parametrize(
    "around", ["{}", "key = '{}'", "see {}, please", '{{"k":"{}"}}', "A={}\r\n"]
)
def test_keys_of_known_issuers_are_hidden(secret: str, around: str) -> None:
    hidden = redact_secrets(around.format(secret), is_config=False)

    assert secret[-20:] not in hidden.text
    assert sum(hidden.found.values()) == 1


@pytest.mark.parametrize("text", PLANTED.values(), ids=PLANTED.keys())
def test_values_of_secret_names_are_hidden(text: str) -> None:
    secret = RANDOM if RANDOM in text else RANDOM[-12:]
    for is_config in (True, False):
        hidden = redact_secrets(text, is_config=is_config)
        assert secret not in hidden.text
        assert hidden.text == text.replace(secret, "***")


def test_a_random_value_of_configuration_is_hidden_whatever_its_name() -> None:
    text = f'{{"Jwt": {{"Key": "{RANDOM}"}}, "github.com": "{RANDOM}"}}'
    assert RANDOM not in redact_secrets(text, is_config=True).text


def test_hashes_ids_and_paths_of_configuration_are_not_hidden() -> None:
    for text in (
        f'"contentHash": "{RANDOM}"',
        f'"documentId": "{RANDOM}"',
        "commit: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        "module: src/components/LoginForm2/PasswordField.tsx",
        "id: 01a1f5dd-c6b4-7a80-b233-a46a6fb69f48",
        "class: SpringSecurityConfiguration2Adapter",
        f"resolution: {{integrity: sha512-{made(86)}==}}",
    ):
        assert redact_secrets(text, is_config=True) == (text, {})


def test_a_file_that_is_one_random_word_is_a_secret() -> None:
    assert is_secret_text(RANDOM + "\n")
    assert is_secret_text("$ANSIBLE_VAULT;1.1;AES256\n3061\n")
    assert is_secret_text("# Netscape HTTP Cookie File\n")
    assert not is_secret_text("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b\n")  # a commit
    assert not is_secret_text("20.11.1\n")


def test_of_several_objects_of_kubernetes_only_the_secrets_are_hidden() -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n"
    secret = f"---\napiVersion: v1\nkind: Secret\nstringData:\n  any: {RANDOM}\n"
    text = service + secret + "---\n" + service

    assert not is_secret_text(text)
    hidden = redact_secrets(text, is_config=False)
    assert RANDOM not in hidden.text
    assert hidden.text.count("kind: Service") == 2
    assert is_secret_text(secret + secret)


@pytest.mark.parametrize("kind", ["", "RSA ", "OPENSSH ", "EC ", "ENCRYPTED "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\\n"])
def test_private_keys_are_hidden(kind: str, end: str) -> None:
    key = PEM.format(kind, end, made(64), made(64))
    text = f"before {'word ' * 100}\n{key}\nafter"
    hidden = redact_secrets(text, is_config=False)

    assert (hidden.found, is_secret_text(text)) == ({"private key": 1}, False)
    assert hidden.text.endswith("-----END " + kind + "PRIVATE KEY-----\nafter")
    assert key.split(end)[1] not in hidden.text
    assert is_secret_text(key)


def test_a_private_key_without_an_end_is_hidden() -> None:
    lines = [made(64) for _ in range(20)]
    text = "words\n-----BEGIN PRIVATE KEY-----\n" + "\n".join(lines)

    assert not any(line in redact_secrets(text, is_config=False).text for line in lines)


HARMLESS = [
    'password = os.environ["DB_PASSWORD"]',
    "token = get_token(request)",
    "password: str = Field(min_length=12)",
    "api_key = settings.api_key",
    'PASSWORD = "password123"',
    "password: ${DB_PASSWORD}",
    "password: {{ .Values.password1 }}",
    'api_key = "your-api-key-123"',
    "max_tokens: 100000",
    "secret_name: my-secret-2",
    'if "-----BEGIN RSA PRIVATE KEY-----" in text:\n    return load(text)',
    '"integrity": "sha512-' + made(86) + '=="',
    'hash = "sha256:' + made(64, "0123456789abcdef") + '"',
    "![](data:image/png;base64," + made(4000) + ")",
    ".sk-toggleable__content-fitted-label2 { color: red }",
    "postgresql://user:password@localhost/db",
    "tokens = tokenizer.encode(text1)",
    '"password": "Bitte geben Sie Ihr Passwort ein"',
    "token_url: https://example.org/oauth2/token",
    "AKIAIOSFODNN7EXAMPLE",
    "compass: north12 bypass=level2",
    '{"url":"http://localhost:8080","email":"ann@example.org"}',
    "# the token base64 encoded, a secret sha256sum of it",
    "private_key = Ed25519PrivateKey.generate()",
    "credentials = standard_b64encode(credentials)",
    'call("token", "base64")',
    "curl -u user:password https://example.org",
    "passwords in commands (`mysql -p`, `docker login -p`)",
    "curl -u $USER:$TOKEN1 https://example.org",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_is_not_touched(text: str) -> None:
    for is_config in (True, False):
        assert redact_secrets(text, is_config=is_config) == (text, {})


def test_the_standard_library_is_hardly_touched() -> None:
    """Some 100 modules, of which several are about passwords, tokens and keys."""
    touched = []
    modules = sorted(Path(random.__file__).parent.glob("*.py"))[::2]
    for path in modules:
        text = path.read_text("utf-8", "replace")
        assert not is_secret_file(path.name)
        assert not is_secret_text(text)
        if redact_secrets(text, is_config=False).found:
            touched.append(path.name)
    assert len(modules) > 50
    assert len(touched) <= 1, touched


def test_a_name_of_a_program_is_no_value() -> None:
    text = "private_key: x25519.X25519PrivateKey_of_a_type"
    assert redact_secrets(text, is_config=False) == (text, {})


def test_a_password_of_digits_is_hidden_in_configuration() -> None:
    hidden = redact_secrets("POSTGRES_PASSWORD: 48151623", is_config=True)
    assert hidden.text == "POSTGRES_PASSWORD: ***"
    for text in ("max_token: 48151623", "password: 900 s 48151623"):
        assert redact_secrets(text, is_config=True) == (text, {})


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        ".env-prod",
        ".env_old",
        ".env~",
        "env.production",
        "production.env.txt",
        "pgpass",
        ".vault_pass.txt",
        "token",
        "github_token.txt",
        "api_key.txt",
        "rootkey.csv",
        "ann_accessKeys.csv",
        ".env.production",
        "prod.env",
        ".git-credentials",
        ".npmrc",
        "terraform.tfstate",
        "terraform.tfstate.backup",
        "credentials.json",
        "secrets.yaml",
        "db-secrets.yml",
        "secrets.prod.yaml",
        "id_rsa",
        "id_ed25519",
        "server.key",
        "cert.PEM",
        "store.jks",
        "keys.kdbx",
        ".netrc",
        ".pgpass",
        ".pypirc",
        ".htpasswd",
        "client_secret_12.json",
        "my-service-account.json",
        "prod.tfvars",
        "credentials",
        "kubeconfig",
        "wp-config.php",
        "netrc",
        "shadow",
        "secrets-production.yaml",
        "db_credentials_old.json",
    ],
)
def test_files_of_secrets_are_known_by_their_names(name: str) -> None:
    assert is_secret_file(name)


@pytest.mark.parametrize(
    "name",
    [
        ".env.example",
        "secrets.py",
        "test_secrets.py",
        "passwords.md",
        "id_rsa.pub",
        "secrets.example.yaml",
        "env.py",
        "env.local.ts",
        "env.test.ts",
        "passwd",
        "common-password",
        "tokens.txt",
        "environment.yml",
        "keyboard.json",
        "credentials.go",
        "tokenizer.json",
        "package-lock.json",
        "monkey.txt",
        "secretary.csv",
        "development.environment",
        "credentials_test.py",
        "password-reset.json",
        "password_policy.yaml",
        "forgot-password-mail.txt",
        "secret-manager.yaml",
    ],
)
def test_ordinary_files_are_not_taken_for_secrets_by_their_names(name: str) -> None:
    assert not is_secret_file(name)


def test_logins_of_docker_are_nothing_but_secret() -> None:
    assert is_secret_text('{"auths": {"registry": {"auth": "' + made(24) + '=="}}}')
    assert not is_secret_text('{"auths": {"registry": {}}, "credsStore": "desktop"}')


def test_a_secret_of_kubernetes_is_nothing_but_secret() -> None:
    assert is_secret_text("apiVersion: v1\nkind: Secret\ndata:\n  a: aGVsbG8=\n")
    assert is_secret_text("items:\n- apiVersion: v1\n  kind: Secret\n  data:\n    a: aGVsbG8=\n")
    assert is_secret_text('{"kind": "Secret", "data": {"a": "aGVsbG8="}}')
    assert not is_secret_text("apiVersion: v1\nkind: SecretStore\ndata: {}\n")
    assert not is_secret_text("valuesFrom:\n- kind: Secret\n  name: values\n")


def test_a_document_that_shows_a_secret_of_kubernetes_is_kept() -> None:
    text = "# How\n\n```yaml\nkind: Secret\ndata:\n  a: aGVsbG8=\n```\n" + "More of it. " * 100
    assert not is_secret_text(text, is_data=False)


HOSTILE = {
    "begins": "-----BEGIN PRIVATE KEY-----\n" * 10_000,
    "base64": "A1b2" * 62_500,
    "names": "password" * 31_250,
    "separators": "password=" * 27_500,
    "spaces": "token" + " " * 250_000,
    "quotes": "token='" * 35_000,
    "schemes": "a://" * 62_500,
    "tokens": "eyJ" * 82_500,
    "dashes": "sk-" * 82_500,
    "values": '"key" value ' * 20_000,
    "variables": 'password" {' * 22_000,
    "commands": "curl -u a " * 25_000,
    "machines": "machine a login b " * 14_000,
    "columns": "a,password\n" + "x,y\n" * 60_000,
    "mysql": "mysql " * 40_000,
    "names of settings": "a" * 250_000,
    "manifests": "kind: Secret\ndata:\n---\n" * 10_000,
    "kinds": "kind: " * 40_000 + "Secret",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_text_takes_long(text: str) -> None:
    started = time.process_time()
    redact_secrets(text, is_config=True)
    is_secret_text(text)

    assert time.process_time() - started < 5


def test_hiding_twice_changes_nothing() -> None:
    for text in PLANTED.values():
        once = redact_secrets(text, is_config=True).text
        assert redact_secrets(once, is_config=True) == (once, {})
